"""The knowledge base as a contributor and the analysis see it: names, entries, mistakes, the compiled form."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from d9mlint import knowledge
from d9mlint.knowledge import KnowledgeError, loader
from d9mlint.knowledge.__main__ import main
from d9mlint.knowledge.loader import load_compiled

GENERATOR = "- {id: torch, title: torch, library: torch, seed: torch.manual_seed(0)}\n"
ENTRY = "- id: demo.draw\n  apis: [demo.draw]\n  kind: draw\n  library: demo\n  draws: [torch]\n"


def rules(root: Path, text: str) -> Path:
    """A directory of rules with this one file on random numbers."""
    path = root / "knowledge" / "rng" / "demo.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    (root / "knowledge" / "generators.yaml").write_text(GENERATOR)
    return root


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("torch.random.manual_seed", "torch.manual_seed"),
        ("torch.nn.modules.conv.Conv2d", "torch.nn.Conv2d"),
        ("torch.utils.data.dataloader.DataLoader", "torch.utils.data.DataLoader"),
        ("torch.utils.data.distributed.DistributedSampler", "torch.utils.data.DistributedSampler"),
        ("torchvision.transforms.transforms.RandomCrop", "torchvision.transforms.RandomCrop"),
        ("tensorflow.random.set_seed", "tf.random.set_seed"),
        ("tensorflow.set_random_seed", "tf.compat.v1.set_random_seed"),
        ("tensorflow.keras.layers.Dense", "tf.keras.layers.Dense"),
        ("keras.layers.Dense", "tf.keras.layers.Dense"),
        ("pytorch_lightning.Trainer", "lightning.pytorch.Trainer"),
        ("lightning.Trainer", "lightning.pytorch.Trainer"),
        ("pytorch_lightning.seed_everything", "lightning.seed_everything"),
        ("lightning.fabric.seed_everything", "lightning.seed_everything"),
        ("gym.make", "gymnasium.make"),
        ("transformers.trainer_utils.set_seed", "transformers.set_seed"),
        ("transformers.models.bert.modeling_bert.BertModel", "transformers.BertModel"),
        (
            "transformers.models.xlm_roberta.XLMRobertaModel.from_pretrained",
            "transformers.XLMRobertaModel.from_pretrained",
        ),
        ("numpy.random.mtrand.rand", "numpy.random.rand"),
        ("my.own.function", "my.own.function"),
    ],
)
def test_every_name_of_an_api_leads_to_one(alias: str, name: str) -> None:
    kb = knowledge.load()
    assert kb.canonical(alias) == name
    assert kb.canonical(name) == name
    assert kb.rng(alias) == kb.rng(name)


def test_what_one_seed_leaves_unseeded() -> None:
    kb = knowledge.load()
    seeded = {
        name: kb.rng(name)[0].seeds for name in ("random.seed", "numpy.random.seed", "torch.manual_seed")
    }
    assert seeded == {
        "random.seed": ["python"],
        "numpy.random.seed": ["numpy"],
        "torch.manual_seed": ["torch", "torch_cuda"],
    }
    assert kb.rng("torch.cuda.manual_seed_all")[0].seeds == ["torch_cuda"]


def test_torch_seed_is_the_opposite_of_a_seed() -> None:
    kb = knowledge.load()
    for name in ("torch.seed", "torch.random.seed", "torch.cuda.seed_all", "torch.Generator.seed"):
        assert [entry.kind for entry in kb.rng(name)] == ["anti-seed"], name


def test_methods_are_found_by_their_bare_name_and_functions_are_not() -> None:
    kb = knowledge.load()
    assert [entry.draws for entry in kb.rng_methods("uniform_")] == [["torch"]]
    assert kb.rng_methods("randperm") == ()
    assert [entry.id for entry in kb.rng_methods("rsample")] == ["torch.distribution_samples"]


def test_a_star_stands_for_all_below() -> None:
    kb = knowledge.load()
    assert [entry.id for entry in kb.rng("torchvision.transforms.v2.RandomResizedCrop")] == ["torchvision.v2"]
    assert kb.rng("torchvision.transforms.v2.Resize") == ()


def test_an_unknown_key_names_its_line_and_the_nearest_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = rules(tmp_path, ENTRY + "  seed_argg: seed\n")
    assert main([str(root)]) == 1
    told = capsys.readouterr().out
    assert "knowledge/rng/demo.yaml:6" in told
    assert "unknown key `seed_argg`, did you mean `seed_arg`?" in told


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (ENTRY + "  method: sometimes\n", 6),
        (ENTRY + ENTRY, 6),
        (ENTRY + "  versions: since 1.7\n", 1),
        ("- id: [\n", 2),
    ],
    ids=["type", "id-twice", "range", "yaml"],
)
def test_a_mistake_is_told_with_file_and_line(tmp_path: Path, text: str, line: int) -> None:
    with pytest.raises(KnowledgeError) as caught:
        load_compiled(rules(tmp_path, text))
    assert f"knowledge/rng/demo.yaml:{line}" in str(caught.value)


OP = """\
- id: demo.op
  library: torch
  apis: [torch.demo]
  devices: [cuda]
  passes: forward
  history:
    - {versions: '>=1.0', behaviour: raises}
    - {versions: '>=2.0', behaviour: silent}
"""


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("devices: [cuda]", "devices: [cuda, mpss]", 4, "`mpss` is none of .*did you mean `mps`"),
        ("passes: forward", "passes: foward", 5, "`foward` is none of .*did you mean `forward`"),
        ("behaviour: silent", "behaviour: raise", 8, "`raise` is none of .*did you mean `raises`"),
        ("behaviour: silent", "behavior: silent", 8, "unknown key `behavior`, did you mean `behaviour`"),
        (
            "passes: forward",
            "passes: forward\n  when: [{arg: a, equals: 1, rank: 2}]",
            1,
            "`equals` and `rank`",
        ),
        ("passes: forward", "passes: forward\n  when: [{arg: a}]", 1, "exactly one test, this one has none"),
        ("passes: forward", "passes: forward\n  when: [{rank: 2}]", 1, "names one argument"),
    ],
)
def test_a_word_outside_a_vocabulary_is_a_mistake_with_its_place(
    tmp_path: Path, old: str, new: str, line: int, said: str
) -> None:
    path = tmp_path / "knowledge" / "ops" / "demo.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(OP.replace(old, new))
    with pytest.raises(KnowledgeError, match=said) as caught:
        load_compiled(tmp_path)
    assert str(caught.value).startswith(f"knowledge/ops/demo.yaml:{line}: ")


def test_a_generator_that_is_not_there_is_a_mistake_with_its_place(tmp_path: Path) -> None:
    text = ENTRY + ENTRY.replace("demo.draw", "demo.other").replace("[torch]", "[torhc]")
    with pytest.raises(KnowledgeError, match=r"no generator `torhc`, did you mean `torch`") as caught:
        load_compiled(rules(tmp_path, text))
    assert str(caught.value).startswith("knowledge/rng/demo.yaml:6: ")


@pytest.mark.parametrize("name", ["demo.Net*", "*.fit", "demo.*.fit"])
def test_a_star_that_has_no_effect_in_roles_is_a_mistake_with_its_place(tmp_path: Path, name: str) -> None:
    path = tmp_path / "knowledge" / "roles.yaml"
    path.parent.mkdir(parents=True)
    entry = (
        f"- id: demo.net\n  role: clock\n  library: torch\n  apis: ['demo.*', '{name}']\n  provenance: [x]\n"
    )
    path.write_text("entries:\n" + entry)
    with pytest.raises(KnowledgeError, match=r"a star only as `\.\*` at its end") as caught:
        load_compiled(tmp_path)
    assert str(caught.value).startswith("knowledge/roles.yaml:5: ")


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (
            "fits-parts: [demo.*]\nruns-method: [fit]\n",
            2,
            "`runs-method` is no kind .*did you mean `runs-methods`",
        ),
        ("fits-parts: demo\n", 1, "`fits-parts` is a list of names"),
    ],
)
def test_a_mistake_in_the_kinds_of_calls_has_its_place(
    tmp_path: Path, text: str, line: int, said: str
) -> None:
    path = tmp_path / "knowledge" / "calls.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(KnowledgeError, match=said) as caught:
        load_compiled(tmp_path)
    assert str(caught.value).startswith(f"knowledge/calls.yaml:{line}: ")


def test_a_name_in_lower_case_stands_for_the_functions_of_a_module() -> None:
    known = knowledge.load()
    assert known.result_type("torch.log1p") == "torch.Tensor"
    assert known.result_type("torch.manual_seed") != "torch.Tensor"
    assert not known.result_type("torch.Size")
    assert not known.result_type("torch.cuda.is_available")


def test_a_star_in_a_name_stands_for_any_characters() -> None:
    known = knowledge.load()
    assert [e.id for e in known.rng("diffusers.StableDiffusionPipeline.__call__")] == ["diffusers.pipelines"]
    assert not known.rng("diffusers.StableDiffusionPipeline.save_pretrained")
    assert known.result_type("diffusers.UNet2DModel.from_pretrained") == "diffusers.UNet2DModel"
    assert not known.result_type("diffusers.UNet2DModel.save_pretrained")


def test_an_id_is_used_once_in_all_files(tmp_path: Path) -> None:
    rules(tmp_path, ENTRY)
    (tmp_path / "knowledge" / "rng" / "other.yaml").write_text("# two\n" + ENTRY)
    with pytest.raises(KnowledgeError, match=r"other.yaml:2: .*already used at knowledge/rng/demo.yaml:1"):
        load_compiled(tmp_path)


def test_broken_knowledge_is_a_usage_error_without_traceback(tmp_path: Path) -> None:
    rules(tmp_path, ENTRY.replace("kind: draw", "kind: draws"))
    (tmp_path / "train.py").write_text("import torch\n")
    code = (
        "import sys, pathlib, d9mlint.knowledge.loader as loader\n"
        "root = pathlib.Path(sys.argv.pop())\nloader.rules_directory = lambda: root\n"
        "from d9mlint.__main__ import main\nsys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "train.py", str(tmp_path)], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 2, done.stderr
    assert "knowledge/rng/demo.yaml:3: " in done.stderr
    assert "Traceback" not in done.stderr


def test_a_changed_rule_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = rules(tmp_path / "rules", ENTRY)
    assert [entry.id for entry in load_compiled(root).rng] == ["demo.draw"]
    rules(root, ENTRY.replace("demo.draw", "demo.other"))
    assert [entry.id for entry in load_compiled(root).rng] == ["demo.other"]


def test_a_cache_that_is_damaged_or_can_not_be_written_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = rules(tmp_path / "rules", ENTRY)
    first = load_compiled(root)
    (cache,) = (tmp_path / "cache" / "d9mlint").glob("knowledge-*.bin")
    cache.write_bytes(b"\x00damaged")
    assert load_compiled(root) == first
    assert cache.read_bytes() != b"\x00damaged"
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert load_compiled(root) == first


def test_the_knowledge_of_several_environments_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    roots = [rules(tmp_path / f"rules{number}", ENTRY) for number in range(9)]
    known = [load_compiled(root) for root in roots]
    assert len(list((tmp_path / "cache" / "d9mlint").glob("knowledge-*.bin"))) == 4
    monkeypatch.setattr(loader, "compile_rules", lambda root, digest: pytest.fail("read again"))
    assert [load_compiled(root) for root in roots[-4:]] == known[-4:]


def test_a_second_run_reads_no_yaml(tmp_path: Path) -> None:
    code = "import sys; from d9mlint import knowledge; knowledge.load(); print('yaml' in sys.modules)"
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    repository = Path(__file__).resolve().parent.parent
    out = [
        subprocess.run(
            [sys.executable, "-c", code], env=env, cwd=repository, capture_output=True, text=True, check=True
        ).stdout.strip()
        for _ in range(2)
    ]
    assert out == ["True", "False"]


def test_what_is_read_from_the_cache_is_what_was_compiled() -> None:
    compiled = loader.compile_rules(loader.rules_directory(), "")
    data = msgspec.msgpack.encode(compiled)
    # By bytes: 1 and 1.0 are equal, and only one of them is the number of a dimension.
    assert msgspec.msgpack.encode(msgspec.msgpack.decode(data, type=loader.Compiled)) == data


@pytest.mark.parametrize("name", ["Normal", "LogNormal", "Gumbel", "Geometric", "MixtureSameFamily"])
def test_sampling_draws_from_torch_for_every_distribution(name: str) -> None:
    found = knowledge.load().rng(f"torch.distributions.{name}.sample")
    assert [entry.draws for entry in found] == [["torch"]]


def test_two_pages_with_one_code_are_a_mistake(tmp_path: Path) -> None:
    page = "---\ncode: DET301\nname: {}\nfamily: settings\nsummary: s\nseverity: error\nconfidence: high\n"
    page += "default: true\nsince: 0.1.0\nlibraries: [torch]\n---\n# DET301 {}\n"
    for name in ("first", "second"):
        (tmp_path / f"DET301-{name}.md").write_text(page.format(name, name))
    with pytest.raises(KnowledgeError, match=r"^DET301-second\.md:2: .* already used in DET301-first\.md"):
        load_compiled(tmp_path)
