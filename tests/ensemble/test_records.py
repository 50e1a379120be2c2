from labelmend.ensemble.records import Stopwatch


def test_seconds_are_kept_by_stage_and_stages_are_announced():
    announced = []
    watch = Stopwatch(announced.append)
    for stage in ("embed", "train", "embed", None):
        watch.lap(stage)
    assert announced == ["embed", "train", "embed"]
    assert list(watch.seconds) == ["embed", "train"]
    assert all(seconds >= 0 for seconds in watch.seconds.values())


def test_a_stage_ends_when_the_waiting_is_over():
    now = []

    def wait():
        now.append(watch._stage)

    watch = Stopwatch(lambda stage: None, wait)
    for stage in ("embed", "train", None):
        watch.lap(stage)
    assert now == [None, "embed", "train"]  # while the stage that ends is still running
