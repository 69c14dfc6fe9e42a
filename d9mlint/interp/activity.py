"""What a program does: whether it trains, with which library, on which device, and what it leaves behind.

These are no findings of their own. They are noted as flags of the state (see ``Interp.flag``), with the
first place as ``Where`` in ``interp.notes`` for the findings that are made at the end of an entry point.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.calls import hands_over_training, owner_types
from d9mlint.interp.places import Where
from d9mlint.ir import nodes as m

if TYPE_CHECKING:
    from d9mlint.interp.hooks import CallEvent, Hooks
    from d9mlint.interp.interpreter import Interp

TORCH_TRAIN = "train:torch"
TF_TRAIN = "train:tensorflow"
TRAIN = "train"
CUDA = "cuda"
OTHER_ACCELERATORS = ("xpu", "mps")
LOADS = "loads-weights"
PRODUCES = "produces"
SAVES = "saves"

_OUTPUT_METHODS = (
    "save",
    "savefig",
    "save_pretrained",
    "save_weights",
    "write",
    "writelines",
    "to_csv",
    "to_json",
    "to_pickle",
    "to_parquet",
    "write_text",
    "add_scalar",
    "add_image",
    "add_histogram",
    "log",
    "imshow",
    "show",
    "render",
)
_OUTPUT_CALLS = frozenset(
    [
        "torch.save",
        "numpy.save",
        "numpy.savez",
        "numpy.savez_compressed",
        "numpy.savetxt",
        "json.dump",
        "pickle.dump",
        "joblib.dump",
        "torchvision.utils.save_image",
        "cv2.imwrite",
        "imageio.imwrite",
        "imageio.imsave",
        "imageio.mimsave",
        "scipy.misc.imsave",
        "matplotlib.pyplot.savefig",
        "matplotlib.pyplot.show",
        "matplotlib.pyplot.imsave",
        "wandb.log",
        "shutil.copy",
        "shutil.move",
        "soundfile.write",
        "torchaudio.save",
        "scipy.io.wavfile.write",
        "tf.saved_model.save",
        "h5py.File",
        "yaml.dump",
        "os.rename",
        "torch.onnx.export",
        "os.symlink",
        "csv.writer",
    ]
)
_SHAPE_ATTRIBUTES = frozenset(
    {"shape", "size", "ndim", "dtype", "device", "numel", "__name__", "dim", "type"}
)

_TRAINER_LIBRARIES = (
    "lightning",
    "pytorch_lightning",
    "transformers",
    "trl",
    "accelerate",
    "fastai",
    "ignite",
)
_TF_LIBRARIES = ("tf.", "keras.")


def note(interp: Interp, flag: str, node: Any, subject: str = "") -> None:
    """Set a flag and remember its first place in this run."""
    interp.flag(flag, node)
    if flag not in interp.places:
        interp.places[flag] = Where(interp, node, subject)


def where(interp: Interp, flag: str) -> Where | None:
    """The first place at which a flag was set in this run."""
    return interp.places.get(flag)


def trains(interp: Interp) -> bool:
    """Whether the run reached training of any kind."""
    return TRAIN in interp.places


def register(hooks: Hooks) -> None:
    """Listen for training, devices and GPU use."""

    @hooks.on_method("backward")
    def backward(interp: Interp, call: CallEvent) -> None:
        # Autograd Functions call backward of their own; a loss has a tensor, a scaler or nothing known before the dot.
        note(interp, TRAIN, call.node, "backward")
        note(interp, TORCH_TRAIN, call.node, "backward")

    @hooks.on_method("fit", "fit_generator", "train_on_batch", "fit_one_cycle", "fine_tune", "learn")
    def fit(interp: Interp, call: CallEvent) -> None:
        note(interp, TRAIN, call.node, "fit")
        types = owner_types(interp, call.owner) if call.owner is not None else []
        if any(t.startswith(_TF_LIBRARIES) for t in types) or (
            any(interp.uses(name) for name in ("tensorflow", "keras"))
            and _unknown(types)
            and not interp.uses("torch")
        ):
            note(interp, TF_TRAIN, call.node, "fit")
        elif any(t.startswith(_TRAINER_LIBRARIES) for t in types):
            note(interp, TORCH_TRAIN, call.node, "fit")
            note(interp, CUDA, call.node, "fit")

    @hooks.on_method("train")
    def train(interp: Interp, call: CallEvent) -> None:
        types = owner_types(interp, call.owner) if call.owner is not None else []
        if any(t.startswith(("transformers.", "trl.")) and t.endswith("Trainer") for t in types):
            note(interp, TRAIN, call.node, "train")
            note(interp, TORCH_TRAIN, call.node, "train")
            note(interp, CUDA, call.node, "train")

    @hooks.on_method("minimize", "apply_gradients", "gradient")
    def tf_train(interp: Interp, call: CallEvent) -> None:
        types = owner_types(interp, call.owner) if call.owner is not None else []
        if interp.uses("tensorflow") and (_unknown(types) or types[0].startswith(_TF_LIBRARIES)):
            note(interp, TRAIN, call.node, "minimize")
            note(interp, TF_TRAIN, call.node, "minimize")

    @hooks.on_call("torch.autograd.backward")
    def autograd(interp: Interp, call: CallEvent) -> None:
        note(interp, TRAIN, call.node, "backward")
        note(interp, TORCH_TRAIN, call.node, "backward")

    @hooks.on_method("cuda")
    def cuda_method(interp: Interp, call: CallEvent) -> None:
        note(interp, CUDA, call.node, "cuda")

    @hooks.on_method("to")
    def to(interp: Interp, call: CallEvent) -> None:
        target = call.args.get("device", 0)
        if target is not None and on_cuda(target):
            note(interp, CUDA, call.node, "to")
        _note_others(interp, target, call.node)

    @hooks.on_method("xpu")
    def xpu_method(interp: Interp, call: CallEvent) -> None:
        note(interp, "xpu", call.node, "xpu")

    @hooks.on_method(
        "load_state_dict", "load_weights", "restore", "set_weights", "from_pretrained", "load_from_checkpoint"
    )
    def loads(interp: Interp, call: CallEvent) -> None:
        note(interp, LOADS, call.node, call.api)

    @hooks.on_call("tf.train.init_from_checkpoint", "tf.compat.v1.train.init_from_checkpoint")
    def from_checkpoint(interp: Interp, call: CallEvent) -> None:
        note(interp, LOADS, call.node, call.api)

    @hooks.on_method(*_OUTPUT_METHODS)
    def writes(interp: Interp, call: CallEvent) -> None:
        note(interp, PRODUCES, call.node, call.api)
        note(interp, SAVES, call.node, call.api)

    @hooks.on_call("builtins.print")
    def prints(interp: Interp, call: CallEvent) -> None:
        if isinstance(call.node, m.Call) and any(_tells(arg) for arg in call.node.args):
            note(interp, PRODUCES, call.node, call.api)

    hooks.any_call.append(_any_call)
    hooks.env.append(_env)


def _unknown(types: list[str]) -> bool:
    return not types or types == ["?"] or types[0].startswith("?")


def on_cuda(value: v.Value) -> bool:
    """Whether a device value names, or may name, a GPU."""
    for one in v.alternatives(value):
        if isinstance(one, v.Lit):
            if isinstance(one.value, str) and one.value.startswith("cuda"):
                return True
            if isinstance(one.value, int) and not isinstance(one.value, bool):
                return True
        elif isinstance(one, v.Obj) and one.api == "torch.device":
            first = one.args.get("type", 0)
            if first is None or on_cuda(first):
                return True
    return False


def _note_others(interp: Interp, value: v.Value | None, node: Any) -> None:
    """Remember accelerators other than CUDA that a device value names."""
    for one in v.alternatives(value) if value is not None else ():
        if isinstance(one, v.Obj) and one.api == "torch.device":
            _note_others(interp, one.args.get("type", 0), node)
        elif isinstance(one, v.Lit) and isinstance(one.value, str):
            name = one.value.partition(":")[0]
            if name in OTHER_ACCELERATORS:
                note(interp, name, node, name)


def accelerators(interp: Interp) -> list[str]:
    """The accelerators that this run puts torch work on, or may, CUDA first."""
    if interp.device == "cpu":
        return []
    named = [name for name in OTHER_ACCELERATORS if name in interp.places]
    return ["cuda", *named] if may_use_cuda(interp) else named


def _chosen_elsewhere(args: v.Args) -> bool:
    """Whether a device's name is not in the code: a configuration that chooses it may choose a GPU."""
    name = args.get("type", 0)
    return name is v.UNKNOWN or isinstance(name, v.Member)


_DEVICE_FREE = frozenset(
    {
        "torch.cuda.is_available",
        "torch.cuda.manual_seed",
        "torch.cuda.manual_seed_all",
        "torch.cuda.device_count",
    }
)


def _tells(node: m.Expr) -> bool:
    """Whether a printed expression shows a value, and not only text or a shape."""
    if isinstance(node, m.Const):
        return False
    if isinstance(node, m.FString):
        return any(_tells(part) for part in node.parts)
    if isinstance(node, m.Name):
        return node.id.rpartition(".")[2] not in _SHAPE_ATTRIBUTES
    if isinstance(node, m.Attr):
        return node.name.rpartition(".")[2] not in _SHAPE_ATTRIBUTES
    if isinstance(node, m.Call):
        if isinstance(node.func, m.Name) and node.func.id in ("len", "type"):
            return False
        return _tells(node.func) if isinstance(node.func, (m.Name, m.Attr)) else True
    if isinstance(node, m.Subscript):
        return _tells(node.value)
    if isinstance(node, (m.Seq,)):
        return any(_tells(elt) for elt in node.elts)
    return True


def _any_call(interp: Interp, call: CallEvent) -> None:
    api = call.api
    if hands_over_training(call.args):
        note(interp, TRAIN, call.node, api)
        note(interp, TORCH_TRAIN, call.node, api)
    if api in _OUTPUT_CALLS:
        note(interp, PRODUCES, call.node, api)
        note(interp, SAVES, call.node, api)
    if api.startswith("torch.cuda.") and api not in _DEVICE_FREE:
        note(interp, "cuda-api", call.node, api)
    elif api == "torch.device" and (on_cuda(v.Obj(api, "", call.args)) or _chosen_elsewhere(call.args)):
        note(interp, "cuda-device", call.node, api)
    device = call.args.kw.get("device")
    _note_others(interp, device, call.node)
    if device is not None and on_cuda(device):
        note(interp, CUDA, call.node, api)
    if api in ("os.execv", "os.execve", "os.execvp", "os.execl", "os.execvpe"):
        note(interp, "exec", call.node, api)
    elif api == "tf.config.set_visible_devices" or api == "tf.config.experimental.set_visible_devices":
        first = call.args.get("devices", 0)
        if isinstance(first, v.Items) and not first.elts and not first.open and _surely_runs(interp):
            note(interp, "no-gpu", call.node, api)


def _env(interp: Interp, name: str, value: v.Value, node: Any) -> None:
    hidden = isinstance(value, v.Lit) and str(value.value) in ("-1", "")
    if name == "CUDA_VISIBLE_DEVICES" and hidden and _surely_runs(interp):
        note(interp, "no-gpu", node, name)


def _surely_runs(interp: Interp) -> bool:
    """Whether what runs now runs in every run: in no branch that is only possible or that an option opens."""
    return not interp.branching and not interp.state.aside


def may_use_cuda(interp: Interp) -> bool:
    """Whether this run puts torch work on a GPU, or may."""
    if interp.device == "cpu" or "no-gpu" in interp.places:
        return False
    return any(flag in interp.places for flag in (CUDA, "cuda-api", "cuda-device"))
