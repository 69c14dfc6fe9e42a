"""What tracing costs: time of a training step and peak memory, as ratios to the untraced program, beside torch's
own DebugMode, which writes down calls and reads no values, and DebugMode with its hashes of tensors, which is the work of
level full. The table in the README is from here.

    python tests/perf/bench_trace.py [ROUNDS [MODEL]]     # 5 unless given; the five variants alternate in every round

Of each variant the best round counts, by its fastest step on the clock and by the median of the CPU time of its steps: what
else runs on the machine only adds to it. The CPU time is the better measure on a busy machine.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

VARIANTS = ("untraced", "light", "full", "DebugMode", "hashes")
MODELS = ("gpt", "resnet", "mlp")
STEPS = 8

PROGRAM = """
import contextlib, json, resource, sys, time
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
torch.set_num_threads(2)
kind, mode, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])

class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, 4, d // 4).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.n2(x))

class Residual(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c), nn.ReLU(),
                                  nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c))

    def forward(self, x):
        return F.relu(x + self.body(x))

if kind == "gpt":
    model = nn.Sequential(nn.Embedding(512, 256), *[Block(256) for _ in range(4)], nn.Linear(256, 512))
    x = torch.randint(0, 512, (8, 128))
    loss_of = lambda: F.cross_entropy(model(x)[:, :-1].flatten(0, 1), x[:, 1:].flatten())
elif kind == "resnet":
    model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), *[Residual(32) for _ in range(4)],
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))
    x, y = torch.randn(16, 3, 32, 32), torch.randint(0, 10, (16,))
    loss_of = lambda: F.cross_entropy(model(x), y)
else:
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    x, y = torch.randn(32, 64), torch.randint(0, 10, (32,))
    loss_of = lambda: F.cross_entropy(model(x), y)
    steps *= 20
opt = torch.optim.AdamW(model.parameters(), foreach=True)
context = contextlib.nullcontext()
hashes = contextlib.nullcontext()
if mode in ("DebugMode", "hashes"):
    from torch.utils._debug_mode import DebugMode
    context = DebugMode()
    if mode == "hashes":
        hashes = DebugMode.log_tensor_hashes(hash_fn="hash_tensor")
times = []
with context, hashes:
    for step in range(steps + 2):
        start = time.perf_counter()
        used = time.process_time()
        loss = loss_of()
        opt.zero_grad()
        loss.backward()
        opt.step()
        times.append((time.perf_counter() - start, time.process_time() - used))
wall, cpu = min(t[0] for t in times[2:]), sorted(t[1] for t in times[2:])[steps // 2]
print(json.dumps([wall, cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))
"""


def measured(directory: str, model: str, variant: str, number: int) -> tuple[float, float, float]:
    """Seconds of a step (the fastest) on the clock, of CPU time (median), and peak memory in KiB of one process."""
    from d9mlint.trace.program import NONE, environment

    program = Path(directory) / "train.py"
    program.write_text(PROGRAM)
    env = dict(os.environ)
    if variant in ("light", "full"):
        recording = Path(directory) / f"{model}-{variant}-{number}"
        recording.mkdir()
        settings = {"directory": str(recording), "level": variant, "roots": [], "steps": 0}
        env = environment(settings, str(recording / "settings.json"), NONE, env)
    command = [sys.executable, str(program), model, variant, str(STEPS)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    wall, cpu, memory = json.loads(done.stdout.splitlines()[-1])
    return wall, cpu, memory


def main() -> None:
    """Prints one line for each model and variant."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory() as directory:
        for model in sys.argv[2:] or MODELS:
            found: dict[str, list[tuple[float, float, float]]] = {variant: [] for variant in VARIANTS}
            for number in range(rounds):
                for variant in VARIANTS:
                    found[variant].append(measured(directory, model, variant, number))
            least = {v: [min(one[n] for one in found[v]) for n in range(2)] for v in VARIANTS}
            for variant in VARIANTS:
                time, cpu = (least[variant][n] / least["untraced"][n] for n in range(2))
                pairs = zip(found[variant], found["untraced"], strict=True)
                memory = statistics.median(a[2] / b[2] for a, b in pairs)
                step = least[variant][0] * 1000
                print(
                    f"{model:7} {variant:10} {step:8.2f} ms  time x{time:.2f}  CPU time x{cpu:.2f}  "
                    f"peak memory x{memory:.3f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
