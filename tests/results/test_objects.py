"""What a place is told by, before anything is asked of it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from raybench.errors import UsageError
from raybench.results import objects
from raybench.results.objects import ObjectPath, ObjectStoreError, ahead, retried
from raybench.results.place import place_of
from raybench.results.spool import left_spools, new_spool
from tests.factories import RUN_ID


def test_folders_stay_folders(monkeypatch: pytest.MonkeyPatch):
    """Relative, absolute, of a user, as a file URI."""
    monkeypatch.setenv("HOME", "/home/someone")
    texts = ("results", "/mnt/nfs/x", "~/x", "file:///mnt/x")
    assert [place_of(text) for text in texts] == [
        Path("results"), Path("/mnt/nfs/x"), Path("/home/someone/x"), Path("/mnt/x"),
    ]  # fmt: skip


def test_a_uri_is_a_place_in_a_bucket():
    """Without a slash at its end; options are not part of the name that is told."""
    place = place_of("s3://bucket/a/b/?endpoint_override=127.0.0.1:9000&scheme=http&region=us-east-1")
    assert isinstance(place, ObjectPath)
    assert (str(place), place.name, place.endpoint) == ("s3://bucket/a/b", "b", "127.0.0.1:9000")
    assert str(place / "c" / "d.parquet") == "s3://bucket/a/b/c/d.parquet"
    assert place / "c" == place_of("s3://bucket/a/b/c?endpoint_override=127.0.0.1:9000&scheme=http&region=us-east-1")


@pytest.mark.parametrize(
    ("uri", "told"),
    [
        ("ftp://host/x", "results go to a folder, s3://BUCKET/PREFIX or gs://BUCKET/PREFIX"),
        ("s3:///x", "give s3://BUCKET/PREFIX"),
        ("s3://bucket//x", "give s3://BUCKET/PREFIX"),
        ("s3://bucket/../x", "give s3://BUCKET/PREFIX"),
        ("s3://bucket/x?regoin=us-east-1", "no option 'regoin'; there are region, scheme and endpoint_override"),
        ("s3://name:hush@bucket/x", "a secret in a URI ends up in logs: give credentials"),
        ("gs://bucket/x?bogus=1", "bogus"),
    ],
)
def test_uris_that_cannot_be_used(uri: str, told: str):
    """One line that names the place, and never the secret in it."""
    with pytest.raises(UsageError) as caught:
        place_of(uri)
    assert told in str(caught.value)
    assert "hush" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_trying_again(monkeypatch: pytest.MonkeyPatch):
    """After twice the pause each time; what is hopeless is asked once."""
    pauses: list[float] = []
    monkeypatch.setattr("raybench.results.objects.time.sleep", pauses.append)

    def refuse(hopeless: bool) -> None:
        raise ObjectStoreError("away", hopeless=hopeless)

    for hopeless in (False, True):
        with pytest.raises(ObjectStoreError, match="away"):
            retried(lambda hopeless=hopeless: refuse(hopeless), tries=4)
    assert pauses == [0.2, 0.4, 0.8]


def test_reading_ahead_keeps_the_order():
    """Of 20 results, one an error that comes where it belongs."""
    def work(number: int) -> float:
        return 60 / (number - 7)

    found = list(ahead([partial(work, number) for number in range(20)]))
    with pytest.raises(ZeroDivisionError):
        found.pop(7)()
    assert [one() for one in found] == [60 / (number - 7) for number in range(20) if number != 7]


@pytest.mark.parametrize(
    ("said", "told", "hopeless"),
    [
        (
            "When initiating multiple part upload for key 'x' in bucket 'b': AWS Error ACCESS_DENIED during "
            "CreateMultipartUpload operation: No response body.",
            f"access denied; {objects._CREDENTIALS}",
            True,
        ),
        (
            "When listing objects under key 'x/' in bucket 'b': AWS Error UNKNOWN (HTTP status 301) during "
            "ListObjectsV2 operation: No response body.",
            "the bucket is in another region; give it with ?region=REGION",
            True,
        ),
        (
            "When uploading object with key 'x' in bucket 'b': AWS Error SLOW_DOWN during PutObject operation: "
            "Please reduce your request rate. (Request ID: Br03j)",
            "slow down (Please reduce your request rate.)",
            False,
        ),
        ("google::cloud::Status(UNAVAILABLE: no answer)\nmore", "google::cloud::Status(UNAVAILABLE: no answer)", False),
    ],
)
def test_what_a_store_says_becomes_a_line(said: str, told: str, hopeless: bool):
    """The reason in words, with what mends it; what only time mends is asked again."""
    with pytest.raises(ObjectStoreError) as caught, objects._told(ObjectPath("s3", "b/x"), "write"):
        raise OSError(said)
    assert (str(caught.value), caught.value.hopeless) == (f"cannot write s3://b/x: {told}", hopeless)


def test_a_live_runs_spool_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Another run into the same place takes it over when its lock is free, and none into another place."""
    monkeypatch.setenv("RAYBENCH_SPOOL_DIR", str(tmp_path))
    place, other = (ObjectPath("s3", "bucket/x", f"endpoint_override=127.0.0.1:{port}") for port in (1, 2))
    spool = new_spool(place, RUN_ID)
    assert list(left_spools(place)) == []
    spool.release()
    assert [left.folder for left in left_spools(other)] == []
    (left,) = left_spools(place)
    assert left.folder == spool.folder
    left.remove()
    assert list(left_spools(place)) == []
