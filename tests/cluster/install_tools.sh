#!/usr/bin/env bash
# What the hosts of `make test-cluster` need, installed where this user may. What is missing then is told by the tests.
PATH=$PATH:/usr/sbin:/sbin
missing=()
for pair in ip:iproute2 sshd:openssh-server ssh:openssh-client rsync:rsync; do
  command -v "${pair%%:*}" > /dev/null || missing+=("${pair##*:}")
done
((${#missing[@]})) && [[ $(id -u) == 0 ]] && command -v apt-get > /dev/null || exit 0
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}"
exit 0
