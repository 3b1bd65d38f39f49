#!/usr/bin/env bash
# The first process of a host: its own name, home, /tmp, /run, /dev/shm and /mnt, then sshd until it is killed.
#   boot_host.sh NAME FOLDER KEPT...      FOLDER holds home/ and etc/; each KEPT path stays seen wherever it lies
set -euo pipefail
name=$1 folder=$2
shift 2
hostname "$name"
ip link set lo up
for file in "$folder"/etc/*; do mount --bind "$file" "/etc/$(basename "$file")"; done

# A fresh folder over $1. What must stay seen below it is bound into the fresh one first.
over() {
  local target=$1 size=$2 fresh
  shift 2
  fresh=$(mktemp -d -p "$folder")
  mount -t tmpfs -o "size=$size,mode=1777" none "$fresh"
  for kept in "$@"; do
    [[ $kept == "$target"/* ]] || continue
    mkdir -p "$fresh${kept#"$target"}"
    mount --rbind "$kept" "$fresh${kept#"$target"}"
  done
  mount -n --move "$fresh" "$target"
}
home=$(mktemp -d -p "$folder")
mount --bind "$folder/home" "$home"
over /mnt 1m "$@"
mkdir /mnt/home
mount -n --move "$home" /mnt/home
over /dev/shm 1g "$@"
over /run 16m "$@"
mkdir -m 0755 /run/sshd
cp "$folder"/ssh/* /run/sshd/      # the folder itself may lie below /tmp
over /tmp 4g "$@"
cd /
exec "$(command -v sshd)" -D -e -f /run/sshd/sshd_config
