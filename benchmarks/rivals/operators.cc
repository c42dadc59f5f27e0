// benchmarks/rivals/operators.cc - what each operator of a program's JSON means.
// Names of tensors: in, w (weights), b (bias or second operand), out. "activation": {"kind",
// "alpha", "beta"} follows.
#include <cblas.h>

#include <algorithm>
#include <cstring>

#include "program.h"

namespace hone::rivals {

using dnnl::algorithm;
using dnnl::memory;

namespace {

constexpr auto kFloat = memory::data_type::f32;
constexpr auto kInference = dnnl::prop_kind::forward_inference;

algorithm eltwise_named(const std::string& kind) {
  static const std::map<std::string, algorithm> kinds = {
      {"relu", algorithm::eltwise_relu},
      {"clip", algorithm::eltwise_clip},
      {"silu", algorithm::eltwise_swish},
      {"gelu_erf", algorithm::eltwise_gelu_erf},
      {"gelu_tanh", algorithm::eltwise_gelu_tanh},
      {"sigmoid", algorithm::eltwise_logistic},
      {"tanh", algorithm::eltwise_tanh}};
  return kinds.at(kind);
}

memory::desc any(const Dims& dims) { return {dims, kFloat, memory::format_tag::any}; }

// The layout `kind` that oneDNN chose for a description made with `any`.
memory::desc chosen(const dnnl::primitive_desc_base& description, dnnl::query kind) {
  return description.query_md(kind);
}

}  // namespace

void Program::append_activation(const Json& op, dnnl::post_ops& after) const {
  if (!op.contains("activation")) return;
  const Json& activation = op["activation"];
  after.append_eltwise(1.0F, eltwise_named(activation.at("kind")), activation.value("alpha", 0.0F),
                       activation.value("beta", 0.0F));
}

dnnl::primitive_attr Program::attributes(const Json& op) const {
  dnnl::primitive_attr attributes;
  dnnl::post_ops after;
  append_activation(op, after);
  attributes.set_post_ops(after);
  return attributes;
}

// w_dims has the groups first where there are any, then outputs; `Primitive` is oneDNN's
// convolution_forward or deconvolution_forward.
template <typename Primitive>
void Program::convolve(const Json& op, algorithm kind) {
  const Dims from = value(op.at("in")).get_desc().dims(), to = op.at("dims"),
             weights_dims = op.at("w_dims"), pads = op.at("pads");
  const size_t half = pads.size() / 2;
  const Dims before(pads.begin(), pads.begin() + half), behind(pads.begin() + half, pads.end());
  const memory::desc bias = op.contains("b") ? any({to[1]}) : memory::desc();
  const typename Primitive::primitive_desc description(
      {kInference, kind, wanted(from), any(weights_dims), bias, wanted(to), op.at("strides"),
       op.at("dilations"), before, behind},
      attributes(op), engine_);
  std::unordered_map<int, memory> arguments = {
      {DNNL_ARG_SRC, in_layout(op.at("in"), description.src_desc())},
      {DNNL_ARG_WEIGHTS, in_layout(op.at("w"), description.weights_desc())},
      {DNNL_ARG_DST, define(op.at("out"), description.dst_desc())}};
  if (op.contains("b")) arguments[DNNL_ARG_BIAS] = in_layout(op.at("b"), description.bias_desc());
  add(description, Primitive(description), std::move(arguments));
}

// "algorithm": convolution_direct or _winograd.
void Program::convolution(const Json& op) {
  const bool winograd = op.value("algorithm", "direct") == "winograd";
  convolve<dnnl::convolution_forward>(
      op, winograd ? algorithm::convolution_winograd : algorithm::convolution_direct);
}

// A transposed convolution.
void Program::deconvolution(const Json& op) {
  convolve<dnnl::deconvolution_forward>(op, algorithm::deconvolution_direct);
}

// Operands "a", "b" and "c" are views (see strided); a constant b has the layout that oneDNN likes.
// "scale" multiplies; "mask" is a tensor that is then added.
void Program::matmul(const Json& op) {
  const Json &a = op.at("a"), &b = op.at("b"), &c = op.at("c");
  const memory left = strided(a, a.at("name")), result = strided(c, c.at("name"));
  const bool packed = constant_[b.at("name")];
  const memory::desc b_layout = packed ? any(b.at("dims")) : strided(b, b.at("name")).get_desc();
  dnnl::primitive_attr attributes;
  dnnl::post_ops after;
  if (op.contains("scale")) attributes.set_output_scales(0, {op["scale"].get<float>()});
  std::unordered_map<int, memory> arguments;
  if (op.contains("mask")) {
    const memory mask = value(op["mask"]);
    arguments[DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1] = mask;
    after.append_binary(algorithm::binary_add, mask.get_desc());
  }
  append_activation(op, after);
  attributes.set_post_ops(after);
  memory::desc bias;
  if (op.contains("bias")) {
    Dims dims(result.get_desc().dims().size(), 1);
    dims.back() = result.get_desc().dims().back();
    arguments[DNNL_ARG_BIAS] = in_layout(op["bias"], dense(dims));
    bias = dense(dims);
  }
  const dnnl::matmul::primitive_desc description(
      op.contains("bias") ? dnnl::matmul::desc(left.get_desc(), b_layout, bias, result.get_desc())
                          : dnnl::matmul::desc(left.get_desc(), b_layout, result.get_desc()),
      attributes, engine_);
  arguments[DNNL_ARG_SRC] = left;
  arguments[DNNL_ARG_WEIGHTS] =
      packed ? in_layout(b.at("name"), description.weights_desc()) : strided(b, b.at("name"));
  arguments[DNNL_ARG_DST] = result;
  add(description, dnnl::matmul(description), std::move(arguments));
}

// in [m, k] times w [k, n]: oneDNN's weights are [n, k].
void Program::inner_product(const Json& op) {
  const Dims to = op.at("dims"), from = value(op.at("in")).get_desc().dims();
  const Dims weights_dims = {to[1], from[1]};
  const memory::desc transposed({to[1], from[1]}, kFloat, memory::format_tag::ba);
  const memory::desc bias = op.contains("bias") ? any({to[1]}) : memory::desc();
  const dnnl::inner_product_forward::primitive_desc description(
      {kInference, wanted(from), any(weights_dims), bias, wanted(to)}, attributes(op), engine_);
  memory plain(transposed, engine_, value(op.at("w")).get_data_handle()),
      packed(description.weights_desc(), engine_);
  dnnl::reorder(plain, packed).execute(stream_, plain, packed);
  stream_.wait();
  std::unordered_map<int, memory> arguments = {
      {DNNL_ARG_SRC, in_layout(op.at("in"), description.src_desc())},
      {DNNL_ARG_WEIGHTS, packed},
      {DNNL_ARG_DST, define(op.at("out"), description.dst_desc())}};
  if (op.contains("bias"))
    arguments[DNNL_ARG_BIAS] = in_layout(op["bias"], description.bias_desc());
  add(description, dnnl::inner_product_forward(description), std::move(arguments));
}

// OpenBLAS: `batch` products of in [m, k] and w [k, n], a bias of n, and relu.
void Program::sgemm(const Json& op) {
  const int64_t m = op.at("m"), n = op.at("n"), k = op.at("k"), batch = op.value("batch", 1);
  const memory out = define(op.at("out"), dense(op.at("dims")));
  const auto data = [](const memory& m) { return static_cast<float*>(m.get_data_handle()); };
  const float *a = data(value(op.at("in"))), *b = data(value(op.at("w"))),
              *bias = op.contains("bias") ? data(value(op["bias"])) : nullptr;
  const bool relu = op.contains("activation");
  float* c = data(out);
  steps_.push_back(
      {false, [=] {
         for (int64_t i = 0; bias != nullptr && i < m; ++i) std::copy_n(bias, n, c + i * n);
         const float beta = bias != nullptr ? 1 : 0;
         for (int64_t i = 0; i < batch; ++i) {
           const float *left = a + i * m * k, *right = b + i * k * n;
           if (m == 1) {
             cblas_sgemv(CblasRowMajor, CblasTrans, static_cast<int>(k), static_cast<int>(n), 1,
                         right, static_cast<int>(n), left, 1, beta, c + i * n, 1);
             continue;
           }
           cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, static_cast<int>(m),
                       static_cast<int>(n), static_cast<int>(k), 1, left, static_cast<int>(k),
                       right, static_cast<int>(n), beta, c + i * m * n, static_cast<int>(n));
         }
         for (int64_t i = 0; relu && i < m * n; ++i) c[i] = std::max(c[i], 0.0F);
       }});
  description_ = "openblas";
}

void Program::softmax(const Json& op) {
  const memory from = value(op.at("in"));
  const dnnl::softmax_forward::primitive_desc description(
      {kInference, from.get_desc(), op.at("axis")}, engine_);
  add(description, dnnl::softmax_forward(description),
      {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, result(op, from)}});
}

void Program::layer_normalization(const Json& op) {
  const memory from = value(op.at("in"));
  const auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
  const dnnl::layer_normalization_forward::primitive_desc description(
      {kInference, from.get_desc(), op.at("epsilon"), flags}, engine_);
  add(description, dnnl::layer_normalization_forward(description),
      {{DNNL_ARG_SRC, from},
       {DNNL_ARG_SCALE, value(op.at("w"))},
       {DNNL_ARG_SHIFT, value(op.at("b"))},
       {DNNL_ARG_DST, define(op.at("out"), from.get_desc())}});
}

// "kind": max, average (zeros counted) or average_inside.
void Program::pool(const Json& op) {
  const Dims from = value(op.at("in")).get_desc().dims(), to = op.at("dims"), pads = op.at("pads");
  const size_t half = pads.size() / 2;
  const Dims before(pads.begin(), pads.begin() + half), behind(pads.begin() + half, pads.end());
  const std::string kind = op.at("kind");
  const auto which = kind == "max"       ? algorithm::pooling_max
                     : kind == "average" ? algorithm::pooling_avg_include_padding
                                         : algorithm::pooling_avg_exclude_padding;
  const memory source = in_layout(op.at("in"), wanted(from));
  const dnnl::pooling_forward::primitive_desc description(
      {kInference, which, source.get_desc(), any(to), op.at("strides"), op.at("kernel"), before,
       behind},
      engine_);
  add(description, dnnl::pooling_forward(description),
      {{DNNL_ARG_SRC, source},
       {DNNL_ARG_DST, define(op.at("out"), chosen(description, dnnl::query::dst_md))}});
}

void Program::eltwise(const Json& op) {
  const memory from = value(op.at("in"));
  const Json& activation = op.at("activation");
  const dnnl::eltwise_forward::primitive_desc description(
      {kInference, eltwise_named(activation.at("kind")), from.get_desc(),
       activation.value("alpha", 0.0F), activation.value("beta", 0.0F)},
      engine_);
  add(description, dnnl::eltwise_forward(description),
      {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, result(op, from)}});
}

// "kind": add or mul; the second operand may have dimensions of 1.
void Program::binary(const Json& op) {
  const memory a = value(op.at("in")), b = value(op.at("b"));
  const auto kind = op.at("kind") == "add" ? algorithm::binary_add : algorithm::binary_mul;
  const memory to = result(op, a);
  const dnnl::binary::primitive_desc description({kind, a.get_desc(), b.get_desc(), to.get_desc()},
                                                 attributes(op), engine_);
  add(description, dnnl::binary(description),
      {{DNNL_ARG_SRC_0, a}, {DNNL_ARG_SRC_1, b}, {DNNL_ARG_DST, to}});
}

void Program::transpose(const Json& op) {
  const memory from = value(op.at("in"));
  const std::vector<size_t> perm = op.at("perm");
  const Dims dims = from.get_desc().dims();
  Dims to_dims, strides(dims.size());
  for (const size_t axis : perm) to_dims.push_back(dims[axis]);
  int64_t stride = 1;
  for (size_t i = perm.size(); i-- > 0;) {
    strides[perm[i]] = stride;
    stride *= dims[perm[i]];
  }
  const memory to = define(op.at("out"), dense(to_dims));
  const memory view(memory::desc(dims, kFloat, strides), engine_, to.get_data_handle());
  const dnnl::reorder::primitive_desc description(from, view);
  add(description, dnnl::reorder(description), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, view}});
}

}  // namespace hone::rivals
