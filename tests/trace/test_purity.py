"""The tracer changes nothing: what a program computes, prints and returns, and what it leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support import needs

pytestmark = needs("torch")

PROGRAM = """
import hashlib, random, sys
import numpy as np
import torch

random.seed(1); np.random.seed(2); torch.manual_seed(3)
own = np.random.default_rng(4)

@torch.library.custom_op("mine::jitter", mutates_args=())
def jitter(x: torch.Tensor) -> torch.Tensor:
    return x + random.random() + float(np.random.rand()) + own.random() + torch.rand(x.shape)

model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.5), torch.nn.Linear(16, 1))
opt = torch.optim.Adam(model.parameters())
data = [(torch.randn(8), i) for i in range(8)]
for epoch in range(2):
    for x, i in torch.utils.data.DataLoader(data, batch_size=4, shuffle=True):
        noise = random.random() + np.random.rand() + jitter(torch.ones(1)).item()
        x[0].zero_()
        hist = torch.zeros(4).index_put_((torch.tensor([0, 0]),), torch.ones(2), accumulate=True)
        loss = model(x * noise).pow(2).mean() + hist.sum()
        opt.zero_grad(); loss.backward(); opt.step()
states = repr(own.bit_generator.state)
states += repr(random.getstate()) + repr(np.random.get_state()) + repr(torch.get_rng_state().tolist())
print(loss.item(), hashlib.sha256(states.encode()).hexdigest(), sys.argv, sys.path[0], __name__)
print("to standard error", file=sys.stderr)
torch.save([model.state_dict(), opt.state_dict()], "saved.pt")
sys.exit(3)
"""


COMPILED = """
import sys
import torch

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = torch.nn.EmbeddingBag(100, 8, mode="sum")
        self.rnn = torch.nn.LSTM(8, 8, dropout=0.5, num_layers=2)

    def forward(self, i):
        return self.rnn(self.bag(i)[None])[0].sum()


net = torch.compile(Net(), backend="eager")
opt = torch.optim.AdamW(net.parameters())
for size in (4, 5, 6):
    opt.zero_grad()
    net(torch.randint(0, 100, (5, size))).backward()
    opt.step()
print([p.sum().item() for p in net.parameters()])
torch.save(net.state_dict(), "saved.pt")
sys.exit(3)
"""
"""torch.compile gives up on the bag of embeddings, and then looks at what runs in its operations."""


def run(directory: Path, *command: str, program: str = PROGRAM) -> tuple[int, str, str, bytes]:
    directory.mkdir()
    (directory / "train.py").write_text(program)
    temporary = directory.parent / "tmp"
    temporary.mkdir(exist_ok=True)
    done = subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        timeout=900,
    )
    return done.returncode, done.stdout, done.stderr, (directory / "saved.pt").read_bytes()


def trace(*arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "d9mlint", "trace", *arguments)


@pytest.mark.full
def test_results_output_and_exit_code_are_those_of_the_program(tmp_path: Path) -> None:
    plain = run(tmp_path / "plain", sys.executable, "train.py", "--a", "b")
    recorded = run(tmp_path / "recorded", *trace("record", "-o", "rec", "train.py", "--a", "b"))
    replayed = run(tmp_path / "replayed", *trace("--replay", "-o", "report.txt", "train.py", "--a", "b"))
    assert plain[0] == 3
    for number, directory in ((recorded, "recorded"), (replayed, "replayed")):
        expected = (
            plain[0],
            plain[1].replace(str(tmp_path / "plain"), str(tmp_path / directory)),
            *plain[2:],
        )
        assert number == expected
    assert not any(p.name.startswith("d9mlint-trace-") for p in (tmp_path / "tmp").iterdir())
    about = json.loads((tmp_path / "recorded" / "rec" / "run.json").read_text())
    assert about["exit_code"] == 3


@pytest.mark.full
def test_torch_compile_leaves_the_tracer_alone(tmp_path: Path) -> None:
    plain = run(tmp_path / "plain", sys.executable, "train.py", program=COMPILED)
    recorded = run(tmp_path / "recorded", *trace("record", "-o", "rec", "train.py"), program=COMPILED)
    replayed = run(
        tmp_path / "replayed", *trace("--replay", "-o", "report.txt", "train.py"), program=COMPILED
    )
    assert plain[0] == 3, plain[2]
    assert recorded == replayed == plain
    assert "0 of the operations differ" in (tmp_path / "replayed" / "report.txt").read_text()


def test_the_second_run_overwrites_nothing_and_a_crash_is_never_equal(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import os, sys, torch\n"
        "torch.manual_seed(0)\n"
        "print(torch.ones(2).sum().item())\n"
        "before = open('log.txt').read()\n"
        "open('log.txt', 'a').write('one run\\n')\n"
        f"open({str(tmp_path / 'far' / 'out.txt')!r}, 'w').write(str(os.getpid()) + before)\n"
        "torch.save({'pid': os.getpid()}, 'saved.pt')\n"
        "os.makedirs('new', exist_ok=False)\n"
        "sys.exit(5 if 'PYTHONHASHSEED' in os.environ else 0)\n"
    )
    (tmp_path / "log.txt").write_text("first line\n")
    (tmp_path / "far").mkdir()
    done = subprocess.run(
        trace("train.py"),
        cwd=tmp_path,
        env={k: v for k, v in os.environ.items() if k != "PYTHONHASHSEED"},
        capture_output=True,
        text=True,
        timeout=900,
    )
    # The second run gets as far as its own exit status: it finds what the first one found.
    assert done.returncode == 2, done.stdout + done.stderr
    assert "could not tell: the second run exited with status 5" in done.stdout
    assert done.stdout.startswith("2.0\n")
    assert (tmp_path / "log.txt").read_text() == "first line\none run\n"
    import torch

    pid = torch.load(tmp_path / "saved.pt")["pid"]
    assert (tmp_path / "far" / "out.txt").read_text() == f"{pid}first line\n"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at /proc")
def test_a_signal_reaches_the_program_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import multiprocessing, os, signal, time, torch\n"
        "def stop(*_):\n"
        "    print('stopping', flush=True)\n"
        "    os._exit(0)\n"
        "if __name__ == '__main__':\n"
        "    worker = multiprocessing.Process(target=time.sleep, args=(1000,))\n"
        "    worker.start()\n"
        "    signal.signal(signal.SIGTERM, stop)\n"
        "    torch.ones(2).sum()\n"
        "    print(worker.pid, flush=True)\n"
        "    time.sleep(1000)\n"
    )
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    process = subprocess.Popen(
        trace("train.py"),
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    worker = int(process.stdout.readline())
    process.send_signal(signal.SIGTERM)
    rest = process.stdout.read()
    assert process.wait(timeout=600) == 128 + signal.SIGTERM
    assert rest == "stopping\n"
    limit = time.monotonic() + 300
    while Path(f"/proc/{worker}").exists() and time.monotonic() < limit:
        time.sleep(0.1)
    assert not Path(f"/proc/{worker}").exists()
    assert [p.name for p in temporary.iterdir() if p.name.startswith("d9mlint")] == []
