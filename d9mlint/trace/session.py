"""The tracer of one process, from the import of torch on."""

from __future__ import annotations

from typing import Any

from d9mlint.trace.recorder import FULL, Recorder, Target, exclude_from_dynamo
from d9mlint.trace.sites import Sites
from d9mlint.trace.watch import Watch


def begin(path: str, header: dict[str, Any], settings: dict[str, Any], sites: Sites, watch: Watch) -> None:
    """Record from now on."""
    recorder = Recorder(path, header, settings["level"], sites, int(settings.get("steps") or 0))
    target = settings.get("target")
    if target and target["process"] == header["key"]:
        from d9mlint.trace.confirm import Confirmation

        recorder.target = Target(target["stream"], target["ordinal"], target["name"])
        recorder.at_target = Confirmation(settings["confirmation"], recorder.leave)
    watch.torch(recorder)
    if settings.get("replay"):
        from d9mlint.trace.replay import Replay

        replay = Replay(recorder)
        recorder.replay = replay
        recorder.ending.append(replay.summary)
    if "stop" in settings:
        from d9mlint.trace.snapshot import Files, Snapshots

        Snapshots(recorder, watch, int(settings["stop"]))
        Files(recorder, watch)
    if settings["level"] != FULL:
        from d9mlint.trace.steps import Steps

        Steps(recorder, watch)
    # After all that is imported here.
    exclude_from_dynamo()
    if settings["level"] == FULL:
        recorder.mode.__enter__()
