"""Random recurrent layers with all of their attributes. See operators.py."""
import numpy as np

# Name, gates, activations per direction.
_LAYERS = [("LSTM", 4, 3), ("GRU", 3, 2), ("RNN", 1, 1)]
# Those with a first and a second parameter, and how many parameters ONNX Runtime reads.
_ACTIVATIONS = ["Relu", "Tanh", "Sigmoid", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu", "Softsign", "Softplus"]
_ALPHA = {"Affine": 0.5, "LeakyRelu": 0.1, "ThresholdedRelu": 0.3, "ScaledTanh": 0.7, "HardSigmoid": 0.25, "Elu": 0.8}
_BETA = {"Affine": 0.1, "ScaledTanh": 0.9, "HardSigmoid": 0.4}


def recurrent(m):
    name, gates, activations = m.pick(_LAYERS)
    steps, batch, size, hidden = m.between(1, 3), m.between(1, 2), m.between(1, 4), m.between(1, 4)
    direction = m.pick(["forward", "reverse", "bidirectional"])
    count = 2 if direction == "bidirectional" else 1
    attributes = {"hidden_size": hidden, "direction": direction}
    # Batch first: the reference, which ONNX Runtime has to leave it to, knows no lengths, activations and clips.
    layout = m.opset >= 14 and direction == "forward" and m.chance(0.5)
    if layout:
        attributes["layout"] = 1  # batch first
    given = lambda *shape: m.graph.given(m.random(shape, np.float32), False, m.chance(0.7))
    state = lambda: given(*((batch, count, hidden) if layout else (count, batch, hidden)))
    x = m.operand((batch, steps, size) if layout else (steps, batch, size), np.float32)
    operands = [x, given(count, gates * hidden, size), given(count, gates * hidden, hidden)]
    operands.append(given(count, 2 * gates * hidden) if m.chance(0.6) else None)
    operands.append(m.graph.given(m.rng.integers(1, steps + 1, batch).astype(np.int32), True, m.chance(0.5)) if m.chance(0.3) and not layout else None)
    operands.append(state() if m.chance(0.3) else None)
    if name == "LSTM":
        operands.append(state() if m.chance(0.3) else None)
        operands.append(given(count, 3 * hidden) if m.chance(0.3) else None)
        if m.chance(0.3) and not layout:
            attributes["input_forget"] = m.below(2)
    while operands[-1] is None:
        operands.pop()
    if name == "GRU":
        attributes["linear_before_reset"] = m.below(2)
    if m.chance(0.3) and not layout and name != "LSTM":  # (oracle.py)
        attributes["clip"] = m.pick([0.5, 1.0, 5.0])
    if m.chance(0.3) and not layout:
        names = [m.pick(_ACTIVATIONS) for _ in range(activations * count)]
        attributes["activations"] = names
        # In the order of those that have one; where lists are left out the defaults hold.
        if any(n in _ALPHA for n in names):
            attributes["activation_alpha"] = [_ALPHA[n] for n in names if n in _ALPHA]
        if any(n in _BETA for n in names):
            attributes["activation_beta"] = [_BETA[n] for n in names if n in _BETA]
    return m.graph.add(name, operands, results=3 if name == "LSTM" and m.chance(0.5) else 2, **attributes)


TEMPLATES = [(recurrent, 2)]
