"""Bytes decide; distances have their textbook values."""

from __future__ import annotations

import struct

import pytest

from d9mlint.verify.scope import growth, size

np = pytest.importorskip("numpy")

from d9mlint.verify.compare import Array, Tally, distance  # noqa: E402


def floats(*values: float, dtype: str = "float32") -> Array:
    return Array(dtype, (len(values),), np.array(values, dtype).tobytes())


def bits(*words: int, dtype: str = "float32", kind: str = "<u4") -> Array:
    return Array(dtype, (len(words),), np.array(words, kind).tobytes())


def test_equal_bytes_are_equal() -> None:
    assert distance(floats(1, -0.0, float("nan")), floats(1, -0.0, float("nan"))) == (0.0, 0.0, 0)


def test_the_sign_of_zero_and_the_payload_of_nan_count_as_different() -> None:
    assert distance(floats(0.0, 1.0), floats(-0.0, 1.0)) == (0.0, 0.5, 0)
    assert distance(bits(0x7FC00000), bits(0x7FC00001)) == (0.0, 1.0, None)


def test_shares_and_relative_differences_are_over_all_elements() -> None:
    found = distance(floats(1, 2, 4, 8), floats(1, 2, 4, 9))
    assert found.v_c == 0.25
    assert found.v_ermv == pytest.approx((1 / 8) / 4)


@pytest.mark.parametrize(
    ("a", "b", "ulp"),
    [
        (bits(0x3F800000), bits(0x3F800001), 1),
        (bits(0x00000001), bits(0x80000001), 2),  # the smallest numbers on both sides of zero
        (bits(0x3F80, dtype="bfloat16", kind="<u2"), bits(0x3F83, dtype="bfloat16", kind="<u2"), 3),
        (bits(0x3C00, dtype="float16", kind="<u2"), bits(0x3BFF, dtype="float16", kind="<u2"), 1),
        (floats(1.0, dtype="float64"), floats(1.0 + 2**-52, dtype="float64"), 1),
        # The whole range of float64 does not overflow.
        (floats(-1.7e308, dtype="float64"), floats(1.7e308, dtype="float64"), 2 * 0x7FEE42D130773B76),
    ],
)
def test_distances_in_units_in_the_last_place(a: Array, b: Array, ulp: int) -> None:
    assert distance(a, b).ulp == ulp
    assert distance(b, a).ulp == ulp


def test_bfloat16_has_the_values_of_the_upper_half_of_float32() -> None:
    one, two = (struct.pack("<f", v)[2:] for v in (1.0, 2.0))
    found = distance(Array("bfloat16", (1,), one), Array("bfloat16", (1,), two))
    assert found.v_ermv == 1.0


def test_complex_numbers_are_compared_by_their_parts() -> None:
    a, b = (Array("complex64", (2,), np.array(v, "complex64").tobytes()) for v in ([1 + 1j, 2], [1 + 2j, 2]))
    found = distance(a, b)
    assert found.v_c == 0.5
    assert found.v_ermv == pytest.approx(1 / 4)


def test_integers_have_a_share_and_no_distance() -> None:
    a, b = (Array("int64", (4,), np.array(v, "int64").tobytes()) for v in ([1, 2, 3, 4], [1, 2, 3, 5]))
    assert distance(a, b) == (None, 0.25, None)


def test_other_shapes_and_dtypes_are_different_altogether() -> None:
    assert distance(floats(1, 2), floats(1)).v_c == 1.0
    assert floats(1, 2).digest != Array("float32", (2, 1), floats(1, 2).data).digest
    assert floats(0.0).digest != Array("int32", (1,), floats(0.0).data).digest


def test_a_tally_counts_distinct_results_and_keeps_the_largest_distance() -> None:
    tally = Tally(floats(1.0, 1.0))
    for value in (1.0, 1.5, 1.25, 1.5):
        tally.add(floats(1.0, value))
    found = tally.summary("out0")
    assert (found["distinct"], found["v_c"], found["v_ermv"]) == (3, 0.5, 0.25)
    assert found["ulp"] == 1 << 22


def test_empty_results_are_equal() -> None:
    assert distance(floats(), floats()) == (0.0, 0.0, 0)


def test_sizes_lie_between_their_ends_and_powers_of_two_stay_such() -> None:
    assert [size(s, 1 << 10, 1 << 18) for s in (0, 0.5, 1)] == [1024, 16384, 262144]
    assert [size(s, 7, 1000) for s in (0, 0.5, 1)] == [7, 84, 1000]
    assert size(0.5, 64, 64) == 64


def test_larger_gpus_get_more_elements() -> None:
    assert [growth(n) for n in (8, 64, 80, 132, 500)] == [1, 1, 1, 2, 4]
