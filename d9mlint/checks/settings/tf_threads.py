"""DET311: several threads of TensorFlow without op determinism."""

from __future__ import annotations

from d9mlint.checks.base import Rule
from d9mlint.checks.settings.tf_release import may_have_switch
from d9mlint.interp import values as v
from d9mlint.interp.events import CallEvent, EndEvent
from d9mlint.interp.listening import on, on_call
from d9mlint.interp.memory import remembered
from d9mlint.interp.places import Where


class Threads(Rule):
    """DET311: several threads of TensorFlow without op determinism."""

    codes = ("DET311",)
    places = remembered(list[Where])

    @on_call(
        "tf.config.threading.set_intra_op_parallelism_threads",
        "tf.config.threading.set_inter_op_parallelism_threads",
    )
    def threads(self, call: CallEvent) -> None:
        """A number of threads is set."""
        value = call.args.get("num_threads", 0)
        if isinstance(value, v.Lit) and value.value != 1:
            self.places.append(Where(self.run, call.node, call.api))

    @on_call("tf.compat.v1.ConfigProto", "tf.ConfigProto")
    def proto(self, call: CallEvent) -> None:
        """The same in a session's configuration."""
        for name in ("intra_op_parallelism_threads", "inter_op_parallelism_threads"):
            value = call.args.kw.get(name)
            if isinstance(value, v.Lit) and value.value != 1:
                self.places.append(Where(self.run, call.node, call.api))
                return

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """Whether op determinism is on is known."""
        switch = may_have_switch(self.run)
        for place in self.places:
            if not self.run.switches.tf_wanted:
                self.report(
                    "DET311",
                    place,
                    "several TensorFlow threads without op determinism: sums may be split differently between runs",
                    f"set the thread counts to 1{', or enable op determinism' if switch else ''}",
                    subject=place.subject,
                )
