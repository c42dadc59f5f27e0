"""Random nodes that sample pictures, with all of their attributes. See operators.py."""
import numpy as np

_COORDINATES = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "tf_crop_and_resize"]


def _integers(m, values):
    return m.graph.constant(np.asarray(values, np.int64))


def resize(m):
    if m.opset < 11:
        return upsample(m)
    a = m.image(np.float32, m.pick([1, 2, 2, 2]), exact=True)
    rank, spatial = len(a.shape), len(a.shape) - 2
    mode = m.pick(["nearest", "linear", "linear", "cubic"] if spatial == 2 else ["nearest", "linear"])
    where = m.pick(_COORDINATES + ["half_pixel_symmetric"] * (m.opset >= 19))
    attributes = {"mode": mode, "coordinate_transformation_mode": where}
    if mode == "nearest":  # rounding decides at halves: places that no scale puts there
        attributes["nearest_mode"] = m.pick(["floor", "ceil"])
        attributes["coordinate_transformation_mode"] = where = "asymmetric"
        factors = [1, 2, 3, 0.5]
        if m.chance(0.2):
            attributes.update(nearest_mode=m.pick(["round_prefer_floor", "round_prefer_ceil"]))
            factors = [1, 2, 4]
    else:
        factors = [1, 2, 1.5, 0.5, 0.75, 2.5]
    if mode == "cubic" and m.chance(0.5):
        attributes["cubic_coeff_a"] = m.pick([-0.5, -0.75])
    if mode != "nearest" and m.chance(0.2):
        attributes["exclude_outside"] = 1 if mode == "cubic" else 0
    if m.opset >= 18 and mode != "nearest" and m.chance(0.2) and where != "tf_crop_and_resize":
        attributes["antialias"] = 1
    roi = None
    if where == "tf_crop_and_resize":
        attributes["extrapolation_value"] = m.pick([0.0, 10.0])
        roi = m.graph.constant(np.asarray([0, 0, *[m.pick([0, 0.25, -0.25]) for _ in range(spatial)], 1, 1, *[m.pick([1, 0.75, 1.25]) for _ in range(spatial)]], np.float32))
    scales = [1, 1] + [m.pick(factors) for _ in range(spatial)]
    # Where a scaled extent is rounded, ONNX's reference goes on with the number that is not and ONNX Runtime with the one that is.
    whole = all(extent * scale == int(extent * scale) for extent, scale in zip(a.shape, scales))
    by_axes = m.opset >= 18 and roi is None and m.chance(0.2)
    if by_axes:
        attributes["axes"] = [d - (rank if m.chance(0.5) else 0) for d in range(2, rank)]
        scales = scales[2:]
    nothing = roi or m.graph.constant(np.zeros(0, np.float32))
    if m.chance(0.5) and whole:
        return m.graph.add("Resize", [a, nothing, m.graph.constant(np.asarray(scales, np.float32))], **attributes)
    extents = a.shape[2:] if by_axes else a.shape
    sizes = [max(1, int(extent * scale)) for extent, scale in zip(extents, scales)]
    if by_axes and m.chance(0.5):
        attributes["keep_aspect_ratio_policy"] = m.pick(["stretch", "not_larger", "not_smaller"])
    last = None if m.opset >= 13 else m.graph.constant(np.zeros(0, np.float32))
    return m.graph.add("Resize", [a, nothing, last, _integers(m, sizes)], **attributes)


def upsample(m):
    a = m.image(np.float32, 2, exact=True)
    scales = [1.0, 1.0, m.pick([1.0, 2.0, 3.0]), m.pick([1.0, 2.0, 4.0])]
    attributes = {"mode": m.pick(["nearest", "linear"])}
    if m.opset >= 10:
        return m.graph.add("Resize" if m.opset == 10 else "Upsample", [a, m.graph.constant(np.asarray(scales, np.float32))], **attributes)
    if m.opset == 9:
        return m.graph.add("Upsample", [a, m.graph.constant(np.asarray(scales, np.float32))], **attributes)
    return m.graph.add("Upsample", [a], scales=scales, **attributes)


def roi_align(m):
    if m.opset < 10:
        return None
    a = m.image(np.float32, 2)
    if a.shape[0] == 0:
        return None
    count = m.between(1, 3)
    corners = m.rng.uniform(0, 3, (count, 2))
    boxes = np.concatenate([corners, corners + m.rng.uniform(0.5, 4, (count, 2))], 1).astype(np.float32)
    pictures = m.rng.integers(0, a.shape[0], count).astype(np.int64)
    attributes = {"mode": m.pick(["avg", "max"])} if m.chance(0.6) else {}
    for name, values in (("output_height", [1, 2, 3]), ("output_width", [1, 2, 3]), ("sampling_ratio", [0, 1, 2]), ("spatial_scale", [1.0, 0.5])):
        if m.chance(0.7):
            attributes[name] = m.pick(values)
    if m.opset >= 16 and m.chance(0.7):
        attributes["coordinate_transformation_mode"] = m.pick(["half_pixel", "output_half_pixel"])
    return m.graph.add("RoiAlign", [a, m.graph.given(boxes, False, m.chance(0.3)), m.graph.given(pictures, True, m.chance(0.5))], **attributes)


def affine_grid(m):
    if m.opset < 20:
        return None
    spatial = m.pick([2, 2, 3])
    batch = m.between(1, 2)
    theta = m.operand((batch, spatial, spatial + 1), np.float32)
    size = [batch, m.between(1, 3), *[m.between(2, 4) for _ in range(spatial)]]
    return m.graph.add("AffineGrid", [theta, _integers(m, size)], align_corners=m.below(2))


def grid_sample(m):
    a = m.image(np.float32, m.pick([2, 2, 3]) if m.opset >= 20 else 2)
    spatial = len(a.shape) - 2
    places = m.rng.uniform(-1.2, 1.2, (a.shape[0], *[m.between(1, 4) for _ in range(spatial)], spatial)).astype(np.float32)
    grid = m.graph.given(places, False, m.chance(0.3))
    mode = m.pick(["linear", "cubic"] if m.opset >= 20 and spatial == 2 else ["linear"] if m.opset >= 20 else ["bilinear", "bicubic"])
    # At a border ONNX's reference moves the place before it interpolates, ONNX Runtime does not.
    padding = m.pick(["zeros", "reflection"] + ["border"] * (mode in ("linear", "bilinear")))
    return m.graph.add("GridSample", [a, grid], mode=mode, padding_mode=padding, align_corners=m.below(2))


def center_crop_pad(m):
    if m.opset < 18:
        return None
    a = m.any_value(least_rank=1)
    axes = m.some_axes(len(a.shape)) or [0]
    attributes = {"axes": axes} if m.chance(0.7) else {}
    shape = [m.between(1, 6) for _ in (axes if attributes else a.shape)]
    return m.graph.add("CenterCropPad", [a, _integers(m, shape)], exact=True, **attributes)


TEMPLATES = [(resize, 3), (roi_align, 1), (affine_grid, 1), (grid_sample, 1), (center_crop_pad, 1)]
