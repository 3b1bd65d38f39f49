"""Sources that do not fit what a workload takes, refused when the sweep is expanded."""

from __future__ import annotations

import pytest

from raybench.errors import SweepError
from raybench.spec.expand import expand
from raybench.spec.reader import sweep_from_bytes


@pytest.mark.parametrize(("base", "what"), [
    ("workload: resnet, source: tokens", "source: tokens are no images, which is what resnet takes"),
    ("workload: resnet, source: {name: shards, dtype: uint16}",
     "source: images are stored as bytes; dtype is for tokens"),
    ("workload: resnet, source: cifar100", "source: cifar100 has 100 classes, not 1000; give model.num_classes: 100"),
    ("workload: encdec, source: cifar100", "source: cifar100 holds images, and encdec takes tokens"),
    ("workload: resnet, model.num_classes: 100, source: {name: cifar100, num_samples: 100}",
     "source: source cifar100 has no num_samples"),
    ("workload: encdec, vocab_size: 65537, source: {name: shards, dtype: uint16}",
     "source: uint16 cannot hold a vocabulary of 65537"),
    ("workload: encdec, num_workers: 4, source: {name: ray_data, num_samples: 3}",
     "source: 3 samples leave none for some of 4 workers"),
    ("workload: resnet, source: {name: ray_data, path: /data}",
     "source: a path is for tokens; images of ray_data are those that are made for it"),
    ("workload: decoder, source: {name: ray_data, column: text}",
     "source: column is for Parquet of your own; give its source.path, too"),
    ("workload: encdec, source: {name: ray_data, loader_workers: 2}", "source: source ray_data has no loader_workers"),
    ('workload: decoder, source: {name: tokens, path: "s3://me:secret@bucket/train.bin"}',
     "source: a path with credentials would be stored with every result; give them by the environment"),
    ("workload: encdec, source: memory, data_cache: cold",
     "only shards, tokens, cifar100 or images read files, memory does not"),
])  # fmt: skip
def test_what_does_not_fit(base: str, what: str) -> None:
    """One line, before anything starts."""
    with pytest.raises(SweepError) as caught:
        expand(sweep_from_bytes(f"{{name: a, base: {{{base}}}}}".encode(), "a.yaml"))
    (line,) = str(caught.value).splitlines()
    assert line.partition("base.")[2].partition(": ")[2] == what.removeprefix("source: ")


def test_the_largest_vocabulary_of_16_bits() -> None:
    """65 536 tokens are 0 to 65 535."""
    text = b"{name: a, base: {workload: encdec, vocab_size: 65536, source: {name: tokens, dtype: uint16}}}"
    (trial,) = expand(sweep_from_bytes(text, "a.yaml")).trials
    assert trial.config.source is not None
    assert trial.config.source.num_samples == 3_750_000
