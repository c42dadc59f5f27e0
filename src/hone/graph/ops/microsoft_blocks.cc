// Weights of few bits in blocks, each of which has a scale and maybe a zero point: MatMulNBits and
// GatherBlockQuantized of com.microsoft (ONNX Runtime, ContribOperators.md), which exporters of
// language models write.
#include "hone/graph/expand.h"
#include "hone/graph/ops/microsoft_quantized.h"
#include "hone/tensor/small_types.h"

namespace hone::graph {
namespace {

constexpr int64_t kMostExtent = int64_t{1} << 31;

bool packs(int64_t bits) { return bits == 2 || bits == 4 || bits == 8; }

int64_t number_at(uint8_t byte, int64_t place, int64_t bits) {
  return (byte >> (place * bits)) & ((1 << bits) - 1);
}

// Returns the numbers of bytes [..., n], of which each byte holds 8 / bits, the first one in its
// lowest bits: u8 [..., n * 8 / bits].
ValueId unpacked(ExpandContext& c, ValueId bytes, int64_t bits) {
  if (bits == 8) return bytes;
  Shape shape = c.shape_of(bytes);
  const int64_t last = std::ssize(shape), each = 8 / bits;
  std::vector<ValueId> parts;
  for (int64_t i = 0; i < each; ++i) {
    const ValueId low =
        c.add("BitShift", {bytes, c.scalar(DType::kU8, static_cast<double>(i * bits))},
              {{"direction", std::string("RIGHT")}});
    const ValueId part =
        c.add("BitwiseAnd", {low, c.scalar(DType::kU8, static_cast<double>((1 << bits) - 1))});
    parts.push_back(c.add("Unsqueeze", {part, c.integers({last})}));
  }
  shape.back() *= each;
  return c.reshape(c.add("Concat", parts, {{"axis", last}}), shape);
}

Status check_block_size(const ExpandContext& c, int64_t size) {
  if (size >= 16 && size <= kMostExtent && (size & (size - 1)) == 0) return ok_status();
  return c.fail("block_size is {}, expected a power of 2 from 16 on", size);
}

// Returns a tensor for weights that the file holds in fewer bits. All constants together may take
// as much as if each weight was unpacked once, of which a byte becomes four floats at most, beside
// what any model may make.
Result<Tensor> new_weights(ExpandContext& c, DType type, const Shape& shape) {
  constexpr int64_t kMostOfByte = 16;
  const Graph& graph = c.graph();
  if (graph.is_body) return c.new_constant(type, shape);
  if (!is_valid(shape)) return c.fail("weights of shape {}", to_string(shape));
  int64_t before = 0;
  for (const Value& value : graph.values) before += value.constant ? value.constant->bytes() : 0;
  const int64_t bytes = num_elements(shape) * dtype_bytes(type);
  const int64_t most = kMaxMadeBytes + (kMostOfByte + 1) * graph.weight_bytes;
  if (bytes <= most - before) return Tensor(type, shape);
  return c.unsupported(
      "weights {} {} of {} bytes: constants would take more than {} bytes, with {} before",
      dtype_name(type), to_string(shape), bytes, most, before);
}

// The right operand of MatMulNBits: weights [N, K], of which each row has blocks along K.
class BlockWeights {
 public:
  explicit BlockWeights(ExpandContext& c) : c_(c) {}

  // Checks the operands and returns the weights as floats of the data's type.
  Result<ValueId> run() {
    HONE_RETURN_IF_ERROR(read_attributes());
    HONE_RETURN_IF_ERROR(check_operands());
    const bool constant = std::all_of(std::begin(kOperands), std::end(kOperands),
                                      [&](size_t i) { return !c_.has(i) || known(i) != nullptr; });
    if (constant) return computed_here();
    return computed_by_nodes();
  }
  [[nodiscard]] int64_t terms() const { return terms_; }
  [[nodiscard]] int64_t columns() const { return columns_; }

 private:
  static constexpr size_t kPacked = 1, kScales = 2, kZeros = 3, kGroups = 4;
  static constexpr size_t kOperands[] = {kPacked, kScales, kZeros, kGroups};

  Status read_attributes() {
    const Attributes& a = c_.attributes();
    terms_ = a.integer("K", 0), columns_ = a.integer("N", 0), bits_ = a.integer("bits", 4);
    block_ = a.integer("block_size", 0);
    if (terms_ < 1 || columns_ < 1 || terms_ > kMostExtent || columns_ > kMostExtent)
      return c_.fail("K is {} and N is {}, expected extents of the weights", terms_, columns_);
    if (!packs(bits_)) return c_.unsupported("weights of {} bits, expected 2, 4 or 8", bits_);
    HONE_RETURN_IF_ERROR(check_block_size(c_, block_));
    if (a.integer("weight_prepacked", 0) != 0)
      return c_.unsupported(
          "weight_prepacked is {}: the weights are in the order of one kernel of ONNX Runtime",
          a.integer("weight_prepacked", 0));
    blocks_ = (terms_ + block_ - 1) / block_;
    return ok_status();
  }

  // Scales and zero points may also stand as one row.
  Status check_operands() {
    const auto has_size = [&](size_t i, int64_t size) { return num_elements(c_.shape(i)) == size; };
    const int64_t blob = block_ * bits_ / 8, zero_bytes = (blocks_ * bits_ + 7) / 8;
    const Shape packed = {columns_, blocks_, blob};
    if (c_.dtype(kPacked) != DType::kU8 || c_.shape(kPacked) != packed)
      return c_.fail("B is {} {}, expected u8 {}", dtype_name(c_.dtype(kPacked)),
                     to_string(c_.shape(kPacked)), to_string(packed));
    const Shape by_block = {columns_, blocks_};
    if (!is_float(c_.dtype(kScales)) || !has_size(kScales, columns_ * blocks_))
      return c_.fail("scales are {} {}, expected floats {}", dtype_name(c_.dtype(kScales)),
                     to_string(c_.shape(kScales)), to_string(by_block));
    if (c_.has(kZeros)) {
      const bool bytes = c_.dtype(kZeros) == DType::kU8;
      const int64_t each = bytes ? zero_bytes : blocks_;
      if ((!bytes && !is_float(c_.dtype(kZeros))) || !has_size(kZeros, columns_ * each))
        return c_.fail("zero_points are {} {}, expected u8 {} or floats {}",
                       dtype_name(c_.dtype(kZeros)), to_string(c_.shape(kZeros)),
                       to_string(Shape{columns_, zero_bytes}), to_string(by_block));
    }
    if (!c_.has(kGroups)) return ok_status();
    if (is_float(c_.dtype(kGroups)) ||
        (!has_size(kGroups, terms_) && !has_size(kGroups, blocks_ * block_)))
      return c_.fail("g_idx is {} {}, expected i32 [{}]", dtype_name(c_.dtype(kGroups)),
                     to_string(c_.shape(kGroups)), terms_);
    return ok_status();
  }

  [[nodiscard]] const Tensor* known(size_t i) const { return c_.constant_of(c_.input(i)); }
  [[nodiscard]] float usual_zero() const { return static_cast<float>(1 << (bits_ - 1)); }

  // [N, blocks], in f32: the zero points and scales.
  void read_blocks(std::vector<float>& zeros, std::vector<float>& scales) const {
    const Tensor& given = *known(kScales);
    const Tensor* points = c_.has(kZeros) ? known(kZeros) : nullptr;
    const int64_t each = 8 / bits_, row_bytes = (blocks_ * bits_ + 7) / 8;
    for (int64_t n = 0; n < columns_; ++n) {
      for (int64_t b = 0; b < blocks_; ++b) {
        const int64_t at = n * blocks_ + b;
        scales.push_back(static_cast<float>(given.at(at)));
        if (points == nullptr)
          zeros.push_back(usual_zero());
        else if (points->dtype() != DType::kU8)
          zeros.push_back(static_cast<float>(points->at(at)));
        else
          zeros.push_back(static_cast<float>(
              number_at(points->as<uint8_t>()[static_cast<size_t>(n * row_bytes + b / each)],
                        b % each, bits_)));
      }
    }
  }

  // Returns which block's scale and zero point each term has.
  Result<std::vector<int64_t>> read_groups() const {
    std::vector<int64_t> groups;
    for (int64_t k = 0; k < terms_; ++k)
      groups.push_back(c_.has(kGroups) ? static_cast<int64_t>(known(kGroups)->at(k)) : k / block_);
    for (const int64_t group : groups) {
      if (group < 0 || group >= blocks_)
        return c_.fail("g_idx has {}, expected 0 to {}", group, blocks_ - 1);
    }
    return groups;
  }

  // Large weights take minutes as nodes that the importer folds.
  Result<ValueId> computed_here() {
    HONE_ASSIGN_OR_RETURN(Tensor weights, new_weights(c_, c_.dtype(0), {columns_, terms_}));
    HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> groups, read_groups());
    std::vector<float> zeros, scales;
    read_blocks(zeros, scales);
    const std::span<const uint8_t> bytes = known(kPacked)->as<uint8_t>();
    const int64_t each = 8 / bits_, row_bytes = blocks_ * block_ / each;
    std::vector<float> row(static_cast<size_t>(terms_));
    for (int64_t n = 0; n < columns_; ++n) {
      for (int64_t k = 0; k < terms_; ++k) {
        const auto of = static_cast<size_t>(n * blocks_ + groups[static_cast<size_t>(k)]);
        const uint8_t byte = bytes[static_cast<size_t>(n * row_bytes + k / each)];
        row[static_cast<size_t>(k)] =
            (static_cast<float>(number_at(byte, k % each, bits_)) - zeros[of]) * scales[of];
      }
      store(weights, n * terms_, row);
    }
    return c_.constant(std::move(weights));
  }

  static void store(Tensor& to, int64_t from, const std::vector<float>& row) {
    if (to.dtype() == DType::kF32) {
      std::copy(row.begin(), row.end(), to.as<float>().begin() + from);
      return;
    }
    for (const float x : row) to.set(from++, static_cast<double>(x));
  }

  Result<ValueId> computed_by_nodes() {
    ValueId zeros = c_.scalar(DType::kF32, static_cast<double>(usual_zero()));
    if (c_.has(kZeros)) {
      const int64_t each = num_elements(c_.shape(kZeros)) / columns_;
      zeros = c_.reshape(c_.input(kZeros), {columns_, each});
      if (c_.dtype(kZeros) == DType::kU8)
        zeros = c_.slice(unpacked(c_, zeros, bits_), 1, 0, blocks_);
      zeros = c_.cast(zeros, DType::kF32);
    }
    const ValueId scales = c_.cast(c_.reshape(c_.input(kScales), {columns_, blocks_}), DType::kF32);
    const ValueId bytes = c_.reshape(c_.input(kPacked), {columns_, blocks_ * block_ * bits_ / 8});
    const ValueId wide = c_.cast(unpacked(c_, bytes, bits_), DType::kF32);
    const ValueId numbers = c_.slice(wide, 1, 0, terms_);
    const ValueId centered = c_.binary("Sub", numbers, c_.has(kZeros) ? by_term(zeros) : zeros);
    return c_.cast(c_.binary("Mul", centered, by_term(scales)), c_.dtype(0));
  }

  // Returns the number of each term's block in its row: [N, K] of [N, blocks].
  ValueId by_term(ValueId by_block) {
    ValueId groups = kNoValue;
    if (c_.has(kGroups))
      groups =
          c_.slice(c_.reshape(c_.input(kGroups), {num_elements(c_.shape(kGroups))}), 0, 0, terms_);
    else
      groups = constant_by(c_, DType::kI32, {terms_},
                           [&](int64_t k) { return static_cast<double>(k / block_); });
    return c_.add("Gather", {by_block, groups}, {{"axis", int64_t{1}}});
  }

  ExpandContext& c_;
  int64_t terms_ = 0, columns_ = 0, bits_ = 0, block_ = 0, blocks_ = 0;
};

// A W^T + bias. How exact A has to be at least (accuracy_level) is met by floats.
Status expand_matmul_nbits(ExpandContext& c) {
  constexpr size_t kBias = 5;
  if (!is_float(c.dtype(0))) return c.fail("A of type {}", dtype_name(c.dtype(0)));
  BlockWeights weights(c);
  HONE_ASSIGN_OR_RETURN(const ValueId w, weights.run());
  if (c.rank(0) < 1 || c.shape(0).back() != weights.terms())
    return c.fail("A of shape {}, expected K = {} as the last extent", to_string(c.shape(0)),
                  weights.terms());
  ValueId y = c.binary("MatMul", c.input(0), c.transpose(w, {1, 0}));
  if (c.has(kBias)) {
    if (c.shape(kBias) != Shape{weights.columns()})
      return c.fail("bias of shape {}, expected [{}]", to_string(c.shape(kBias)),
                    weights.columns());
    y = c.binary("Add", y, c.input(kBias));
  }
  c.result(0, y);
  return ok_status();
}

// Rows of a table are found as they are stored, and become floats then.
class BlockGather {
 public:
  explicit BlockGather(ExpandContext& c) : c_(c) {}

  Status run() {
    HONE_RETURN_IF_ERROR(check());
    const bool packed = c_.dtype(0) == DType::kU8;
    const int64_t axis = quantized_ > gathered_ ? quantized_ + c_.rank(1) - 1 : quantized_;
    const auto found = [&](size_t i) {
      return c_.add("Gather", {c_.input(i), c_.input(1)}, {{"axis", gathered_}});
    };
    const ValueId x = packed ? unpacked(c_, found(0), bits_) : found(0);
    const ValueId scales = found(kScales);
    ValueId zeros = kNoValue;
    if (c_.has(kZeros)) {
      zeros = packed ? unpacked(c_, found(kZeros), bits_) : found(kZeros);
      HONE_RETURN_IF_ERROR(c_.status());
      const int64_t last = c_.rank_of(zeros) - 1;
      if (packed) zeros = c_.slice(zeros, last, 0, c_.shape_of(scales).back());
    } else if (packed) {
      zeros = c_.scalar(DType::kU8, static_cast<double>(1 << (bits_ - 1)));
    }
    c_.result(0, c_.add("DequantizeLinear", {x, scales, zeros},
                        {{"axis", axis}, {"block_size", block_}}));
    return ok_status();
  }

 private:
  static constexpr size_t kScales = 2, kZeros = 3;

  Status check() {
    const Attributes& a = c_.attributes();
    const Shape& data = c_.shape(0);
    const DType type = c_.dtype(0);
    bits_ = a.integer("bits", 4), block_ = a.integer("block_size", 128);
    if (type != DType::kU8 && type != kI4 && type != kU4)
      return c_.unsupported("data of type {}, expected u8, i4 or u4", dtype_name(type));
    if (type == DType::kU8 && !packs(bits_))
      return c_.unsupported("bits is {}, expected 2, 4 or 8", bits_);
    HONE_RETURN_IF_ERROR(check_block_size(c_, block_));
    for (const auto& [name, axis, otherwise] :
         {std::tuple("gather_axis", &gathered_, 0), std::tuple("quantize_axis", &quantized_, 1)}) {
      const int64_t given = a.integer(name, otherwise);
      const auto normal = normalize_axis(given, std::ssize(data));
      if (!normal) return c_.fail("{} is {} for data of shape {}", name, given, to_string(data));
      *axis = *normal;
    }
    if (gathered_ == quantized_)
      return c_.unsupported("gather_axis and quantize_axis are both {}", gathered_);
    const auto last = std::ssize(data) - 1;
    if (type == DType::kU8 && (gathered_ != 0 || (bits_ < 8 && quantized_ != last)))
      return c_.unsupported(
          "gather_axis {} and quantize_axis {} of packed data of shape {}, expected 0 and {}",
          gathered_, quantized_, to_string(data), last);
    return check_blocks();
  }

  Status check_blocks() const {
    const bool packed = c_.dtype(0) == DType::kU8;
    const int64_t each = packed ? 8 / bits_ : 1;
    Shape scales = c_.shape(0);
    int64_t& blocks = scales[static_cast<size_t>(quantized_)];
    const int64_t extent = quantized_ == std::ssize(scales) - 1 ? blocks * each : blocks;
    blocks = (extent + block_ - 1) / block_;
    if (!is_float(c_.dtype(kScales)) || c_.shape(kScales) != scales)
      return c_.fail("scales are {} {}, expected floats {}", dtype_name(c_.dtype(kScales)),
                     to_string(c_.shape(kScales)), to_string(scales));
    if (!c_.has(kZeros)) return ok_status();
    Shape zeros = scales;
    zeros.back() = (zeros.back() + each - 1) / each;
    if (c_.dtype(kZeros) == c_.dtype(0) && c_.shape(kZeros) == zeros) return ok_status();
    return c_.fail("zero_points are {} {}, expected {} {}", dtype_name(c_.dtype(kZeros)),
                   to_string(c_.shape(kZeros)), dtype_name(c_.dtype(0)), to_string(zeros));
  }

  ExpandContext& c_;
  int64_t bits_ = 0, block_ = 0, gathered_ = 0, quantized_ = 0;
};

Status expand_gather_block_quantized(ExpandContext& c) { return BlockGather(c).run(); }

}  // namespace

std::span<const Op> microsoft_block_ops() {
  static const Op ops[] = {
      expanded_op("com.microsoft.MatMulNBits", 1, {3, 6, 1},
                  "K:i N:i accuracy_level:i bits:i block_size:i weight_prepacked:i",
                  expand_matmul_nbits),
      expanded_op("com.microsoft.GatherBlockQuantized", 1, {3, 4, 1},
                  "bits:i block_size:i gather_axis:i quantize_axis:i",
                  expand_gather_block_quantized),
  };
  return ops;
}

}  // namespace hone::graph
