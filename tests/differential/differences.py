"""Whether a result is the one expected."""
import numpy as np

# Largest difference allowed, relative to the largest magnitude of the output.
TOLERANCE = {np.float32: 2e-4, np.float64: 1e-6, np.float16: 2e-2}


def difference(found, expected, signs=False, rounds=False):
    """None, or what is wrong. signs: a zero must have the sign that is expected; rounds: integers may be off by 1."""
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return f"{found.dtype} {list(found.shape)}, expected {expected.dtype} {list(expected.shape)}"
    is_float = expected.dtype.kind == "f"
    if signs and is_float:
        wrong = (found == 0) & (expected == 0) & (np.signbit(found) != np.signbit(expected))
        if wrong.any():
            return f"{np.count_nonzero(wrong)} of {found.size} elements are zeros of the other sign"
    if found.size == 0 or np.array_equal(found, expected, equal_nan=is_float):
        return None
    if rounds and np.abs(found.astype(np.float64) - expected.astype(np.float64)).max() <= 1 and not is_float:
        return None
    if expected.dtype.type not in TOLERANCE:
        return f"{np.count_nonzero(found != expected)} of {found.size} elements differ"
    a, b = found.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(b)
    wrong = np.where(finite, ~np.isfinite(a), ~((a == b) | np.isnan(a) & np.isnan(b)))
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        return f"{np.count_nonzero(wrong)} of {found.size} elements are not finite where they should be, or the reverse: {a[at]} at {list(at)}, expected {b[at]}"
    error = np.abs(a[finite] - b[finite]).max() / max(1.0, np.abs(b[finite]).max())
    return None if error <= TOLERANCE[expected.dtype.type] else f"relative error {error:.2g}"
