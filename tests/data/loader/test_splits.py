"""A file's split depends on its name and the shares, on nothing else."""

from tengen.config.settings.data import LoaderSettings
from tengen.data.loader.splits import SPLITS, share_of, split_of

NAMES = [f"{number:010d}-a.npz" for number in range(20_000)]


def test_shares() -> None:
    settings = LoaderSettings(validation=0.1, test=0.05)
    found = [split_of(name, settings.validation, settings.test) for name in NAMES]
    for split in SPLITS:
        share = share_of(split, settings)
        # Five standard deviations of 20,000 draws are less than 0.02.
        assert abs(found.count(split) / len(NAMES) - share) < 0.02
    assert [share_of(split, settings) for split in SPLITS] == [0.85, 0.1, 0.05]


def test_all_is_for_training_unless_asked() -> None:
    assert {split_of(name, 0, 0) for name in NAMES} == {"train"}


def test_known_names_stay_where_they_are() -> None:
    found = [split_of(f"{name}.npz", 0.4, 0.3) for name in "abch"]
    assert found == ["train", "train", "test", "validation"]
    assert split_of("\udcff.npz", 0.3, 0.3) in SPLITS  # a name that is no text


def test_larger_shares_take_no_file_out_of_a_split_before() -> None:
    for name in NAMES[:2000]:
        before, after = split_of(name, 0.1, 0.1), split_of(name, 0.2, 0.1)
        assert before == after or (before, after) == ("train", "validation")
