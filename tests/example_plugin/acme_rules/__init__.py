"""Rules about acme. The pages in `rules/` say what they mean; this module has those that need code."""

from __future__ import annotations

from d9mlint import api


class ReseededSampler(api.Rule):
    """A sampler that is made twice with the same seed gives the same samples twice."""

    codes = ("ACM102",)
    seeds = api.remembered(list[int])

    @api.on_call("acme.Sampler")
    def made(self, call: api.CallEvent) -> None:
        seed = api.literal(call.args.get("seed", 0))
        if not isinstance(seed, int):
            return
        if seed in self.seeds:
            self.report(
                "ACM102",
                call.node,
                f"`acme.Sampler` with the seed {seed} of another sampler: both give the same samples",
                "give each sampler its own seed",
                subject=call.api,
            )
        self.seeds.append(seed)


RULES = [ReseededSampler]
