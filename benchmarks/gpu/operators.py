"""Operators one by one: as an ONNX model for Hone and as a function of PyTorch, its rival and, in float64, the reference."""
import time
from dataclasses import dataclass, field

import numpy as np

import ahead
import parts
import timing

TYPES = {"fp32": (1, np.float32), "fp16": (10, np.float16), "bf16": (16, np.uint16)}
TOLERANCE = {"fp32": 1e-5, "tf32": 1e-3, "fp16": 2e-3, "bf16": 1e-2}
TUNE_SECONDS, SMALL_TUNE_SECONDS = 8, 4
ROW_SECONDS = 3  # of a tuned row beside that
COPY_BYTES = 1 << 30


@dataclass
class Operator:
    name: str
    shapes: list  # of its inputs
    small: list  # the same for a test
    nodes: list  # (operator of ONNX, attributes); the first takes all inputs, each later one the result
    function: object  # of PyTorch
    type: str = "fp32"  # tf32: float32, which products may round to it
    constants: dict = field(default_factory=dict)

    @property
    def storage(self):
        return "fp32" if self.type == "tf32" else self.type


def product(m, n, k, kind):
    return Operator(f"{kind} product {m}x{n}x{k}", [(m, k), (k, n)], [(64, 48), (48, 96)], [("MatMul", {})], lambda torch, a, b: torch.matmul(a, b), kind)


def unary(name, shape, small, node, function, **attributes):
    return Operator(name, [shape], [small], [(node, attributes)], function)


# In the order in which they are measured, as of the models. Products of ResNet-50, BERT, GPT-2 and language models of 7e9 parameters, at a few lengths.
REAL = [(128, 768, 768), (128, 3072, 768), (128, 768, 3072), (1024, 3072, 1024), (3136, 256, 64), (784, 512, 128), (196, 1024, 256), (2048, 4096, 4096),
        (512, 11008, 4096), (4096, 4096, 4096)]
PRODUCTS = ([product(n, n, n, "fp32") for n in (1024, 2048, 4096, 8192)]
            + [product(*shape, kind) for kind in ("tf32", "fp16", "bf16") for shape in REAL])
MEMORY = [
    unary("softmax of rows", (16384, 1024), (64, 128), "Softmax", lambda t, x: t.softmax(x, -1), axis=-1),
    unary("GELU", (1 << 24,), (1 << 12,), "Gelu", lambda t, x: t.nn.functional.gelu(x)),
    Operator("add", [(1 << 24,)] * 2, [(1 << 12,)] * 2, [("Add", {})], lambda t, x, y: x + y),
    unary("transpose of a matrix", (4096, 4096), (96, 64), "Transpose", lambda t, x: x.t().contiguous(), perm=[1, 0]),
    unary("channels last", (64, 64, 64, 64), (2, 8, 8, 8), "Transpose", lambda t, x: x.permute(0, 2, 3, 1).contiguous(), perm=[0, 2, 3, 1]),
    unary("max pool 3x3, stride 2", (64, 64, 64, 64), (1, 8, 16, 16), "MaxPool", lambda t, x: t.nn.functional.max_pool2d(x, 3, 2, 1), kernel_shape=[3, 3],
          strides=[2, 2], pads=[1, 1, 1, 1]),
    unary("global average pool", (64, 256, 32, 32), (2, 8, 8, 8), "GlobalAveragePool", lambda t, x: x.mean((2, 3), keepdim=True)),
    Operator("layer norm", [(16384, 1024), (1024,), (1024,)], [(64, 128), (128,), (128,)], [("LayerNormalization", {"axis": -1})],
             lambda t, x, w, b: t.nn.functional.layer_norm(x, x.shape[-1:], w, b)),
    Operator("sums of columns", [(16384, 1024)], [(64, 128)], [("ReduceSum", {"keepdims": 0})], lambda t, x: x.sum(0),
             constants={"axes": np.array([0], np.int64)}),
]


def write_model(operator, shapes, path):
    """The operator as an ONNX model."""
    import onnx
    from onnx import helper, numpy_helper

    code = TYPES[operator.storage][0]
    names = [f"x{i}" for i in range(len(shapes))]
    nodes, last = [], [*names, *operator.constants]
    for i, (kind, attributes) in enumerate(operator.nodes):
        nodes.append(helper.make_node(kind, last, [f"y{i}"], **attributes))
        last = [f"y{i}"]
    graph = helper.make_graph(nodes, "operator", [helper.make_tensor_value_info(n, code, s) for n, s in zip(names, shapes, strict=True)],
                              [helper.make_tensor_value_info(last[0], code, None)], [numpy_helper.from_array(a, n) for n, a in operator.constants.items()])
    model = onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9))
    onnx.save_model(model, path)


def make_inputs(operator, shapes):
    arrays = [np.random.default_rng(i).standard_normal(shape, dtype=np.float32) for i, shape in enumerate(shapes)]
    if operator.storage == "bf16":
        return [(array.view(np.uint32) >> 16).astype(np.uint16) for array in arrays]
    return [array.astype(TYPES[operator.storage][1]) for array in arrays]


def reference(torch, operator, arrays, path, device):
    """In float64 by PyTorch where that is, else by ONNX Runtime."""
    if torch:
        return [operator.function(torch, *[timing.to_torch(torch, array, device).double() for array in arrays]).cpu().numpy()]
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return [array.astype(np.float64) for array in session.run(None, {f"x{i}": array for i, array in enumerate(arrays)})]


def copy_rate(torch, setting):
    """Bytes a second of a copy within the rivals' memory, those read and those written."""
    count = COPY_BYTES >> 6 if setting.small else COPY_BYTES
    source = torch.empty(count, dtype=torch.uint8, device=setting.rivals)
    target = torch.empty_like(source)
    return 2 * count / timing.of_torch(torch, lambda: target.copy_(source), setting.rivals)


def rival_seconds(torch, operator, arrays, device):
    tensors = [timing.to_torch(torch, array, device) for array in arrays]
    torch.backends.cuda.matmul.allow_tf32 = operator.type == "tf32"
    return timing.of_torch(torch, lambda: operator.function(torch, *tensors), device)


def model_file(setting, operator):
    return setting.folder("operators") / f"{parts.file_name(operator.name)}.onnx"


def shapes_of(setting, operator):
    return operator.small if setting.small else operator.shapes


def chosen(setting, operators):
    """Those that are measured: a few of them where the script is tested."""
    return [operator for operator in operators[:: max(1, len(operators) // 3)] if operator.type != "bf16"] if setting.small else operators


def tune_seconds(setting):
    return SMALL_TUNE_SECONDS if setting.small else TUNE_SECONDS


def prepare(setting, operator, tuned=0):
    """Compiles or tunes the operator's library; returns the columns that say how."""
    file = model_file(setting, operator)
    write_model(operator, shapes_of(setting, operator), file)
    options = ["--device", setting.device, "--no-check", "--no-db", "-o", file.with_suffix(".so")]
    if operator.type == "tf32":
        options.append("--accuracy=fast")
    begin = time.monotonic()
    parts.hone(setting, *(["tune", file, "--budget", f"{tuned}s"] if tuned else ["compile", file]), *options)
    return {"hone_compile_seconds": round(time.monotonic() - begin, 2)}


def jobs(setting):
    return [(operator.name, lambda operator=operator: prepare(setting, operator)) for operator in (*chosen(setting, PRODUCTS), *chosen(setting, MEMORY))]


def measure_row(setting, operator, tuned, torch):
    columns = prepare(setting, operator, tuned) if tuned else ahead.take(setting, operator.name, lambda: prepare(setting, operator))
    shapes, file = shapes_of(setting, operator), model_file(setting, operator)
    arrays, library = make_inputs(operator, shapes), file.with_suffix(".so")
    setting.begin(operator.name)
    engine = timing.OnDevice(library, {f"x{i}": array for i, array in enumerate(arrays)}, torch if setting.kind == "cuda" else None)
    engine.launch()
    columns["error"] = timing.error(engine.found(), reference(torch, operator, arrays, file, setting.rivals))
    if not columns["error"] <= TOLERANCE[operator.type]:
        columns["problem"] = "the result is wrong"
    columns["hone_seconds"] = timing.of_hone(engine)
    moved = sum(array.nbytes for array in (*engine.inputs, *engine.outputs))
    engine.close()
    columns["bytes_per_second"] = moved / columns["hone_seconds"]
    if operator.nodes[0][0] == "MatMul":
        (m, k), (_, n) = shapes
        columns["flops_per_second"] = 2 * m * n * k / columns["hone_seconds"]
    if torch:
        columns["torch_seconds"] = rival_seconds(torch, operator, arrays, setting.rivals)
        columns["torch_over_hone"] = columns["torch_seconds"] / columns["hone_seconds"]
    return columns


def measure(result, setting, operators, tuned=0):
    """A row for each operator, as it is compiled or tuned for so many seconds."""
    try:
        import onnx  # noqa: F401
    except ImportError as missing:
        raise parts.CannotRun(f"no onnx package: {missing}") from missing
    parts.described(setting)
    torch, reason = parts.torch_or_none(setting)
    rate = copy_rate(torch, setting) if torch and operators is MEMORY else None
    for operator in chosen(setting, operators):
        if result.has(operator.name):
            continue
        if tuned and setting.left < tuned + ROW_SECONDS:
            raise parts.NoTime(f"a row takes {tuned + ROW_SECONDS} s")
        try:
            columns = measure_row(setting, operator, tuned, torch)
        except RuntimeError as problem:
            parts.row_failed(result, operator.name, problem)
            continue
        if rate and "bytes_per_second" in columns:
            columns |= {"copy_bytes_per_second": rate, "share_of_copy": columns["bytes_per_second"] / rate}
        result.add(operator.name, **columns, rival=reason or "PyTorch eager")
