"""What the machine is, found out without any framework. Runs in child processes."""

from __future__ import annotations

import ctypes
import platform
import resource
import subprocess

_MULTIPROCESSOR_COUNT = 16
"""CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT of CUDA's driver interface."""


def driver() -> str:
    """The version of NVIDIA's driver, as its own tool tells it; ``unknown`` where there is none."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return done.stdout.split("\n")[0].strip() or "unknown"


def processor() -> str:
    """The processor's model, where the system tells it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as stream:
            for line in stream:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def multiprocessors(index: int) -> int:
    """How many multiprocessors the CUDA device of this index has; 0 where the driver does not tell."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    device, count = ctypes.c_int(), ctypes.c_int()
    told = (
        cuda.cuInit(0) == 0
        and cuda.cuDeviceGet(ctypes.byref(device), index) == 0
        and cuda.cuDeviceGetAttribute(ctypes.byref(count), _MULTIPROCESSOR_COUNT, device) == 0
    )
    return count.value if told else 0


def limit_memory(extra: int) -> None:
    """Let this process take so many bytes of the host's memory more than it has. Where the system does not say how much
    that is, there is no limit."""
    try:
        with open("/proc/self/status", encoding="ascii") as stream:
            sizes = dict(line.split(":", 1) for line in stream)
        used = int(sizes["VmData"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return
    resource.setrlimit(resource.RLIMIT_DATA, (used + extra, resource.getrlimit(resource.RLIMIT_DATA)[1]))
