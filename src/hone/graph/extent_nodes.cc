#include "hone/graph/extent_nodes.h"

#include <numbers>

namespace hone::graph {
namespace {

class Maker {
 public:
  explicit Maker(const NodeMaker& make) : make_(make) {}

  ValueId add(const char* type, std::vector<ValueId> inputs, NamedAttributes attributes = {}) {
    return make_.node(type, std::move(inputs), attributes);
  }
  ValueId number(DType dtype, double value) {
    Tensor tensor(dtype, {});
    tensor.set(0, value);
    return make_.constant(std::move(tensor));
  }
  ValueId integer(int64_t value) { return number(DType::kI64, static_cast<double>(value)); }
  ValueId list(int64_t value) {
    Tensor tensor(DType::kI64, {1});
    tensor.set(0, static_cast<double>(value));
    return make_.constant(std::move(tensor));
  }
  ValueId cast(ValueId x, DType dtype) {
    return add("Cast", {x}, {{"to", static_cast<int64_t>(dtype)}});
  }
  ValueId extent(ValueId x, int64_t axis) {
    return add("Gather", {add("Shape", {x}), integer(axis)});
  }
  ValueId count_to(ValueId end) { return add("Range", {integer(0), end, integer(1)}); }

 private:
  const NodeMaker& make_;
};

// Matrices of the waves: a row for each element, a column for each bin.
struct Waves {
  ValueId cosines = kNoValue, sines = kNoValue;
};

// Returns how often each element counts where the bins above the half are those below, as a column.
ValueId weights_of(Maker& m, ValueId elements, ValueId length, DType dtype) {
  const ValueId is_first = m.add("Equal", {elements, m.integer(0)});
  const ValueId twice = m.add("Mul", {elements, m.integer(2)});
  const ValueId is_last = m.add("Equal", {twice, length});
  const ValueId once = m.add("Or", {is_first, is_last});
  const ValueId weights = m.add("Where", {once, m.number(dtype, 1), m.number(dtype, 2)});
  return m.add("Unsqueeze", {weights, m.list(1)});
}

Waves waves_of(Maker& m, const SpectrumOfExtent& dft, DType dtype) {
  const bool is_mirrored = dft.onesided && dft.inverse;
  const ValueId extent = m.extent(dft.x, dft.axis);
  const ValueId length =
      is_mirrored ? m.add("Mul", {m.integer(2), m.add("Sub", {extent, m.integer(1)})}) : extent;
  const ValueId bins = dft.onesided && !dft.inverse
                           ? m.add("Add", {m.add("Div", {length, m.integer(2)}), m.integer(1)})
                           : length;
  const ValueId elements = m.count_to(extent);
  const ValueId products = m.add("Mul", {m.add("Unsqueeze", {elements, m.list(1)}),
                                         m.add("Unsqueeze", {m.count_to(bins), m.list(0)})});
  // Turns of half a circle at most, so that angles have all their digits.
  const ValueId turns = m.add("Div", {m.cast(products, DType::kF64), m.cast(length, DType::kF64)});
  const ValueId rest = m.add("Sub", {turns, m.add("Round", {turns})});
  const ValueId angles =
      m.cast(m.add("Mul", {rest, m.number(DType::kF64, 2 * std::numbers::pi)}), dtype);
  Waves waves = {m.add("Cos", {angles}), m.add("Sin", {angles})};
  if (!dft.inverse) waves.sines = m.add("Neg", {waves.sines});
  for (ValueId* matrix : {&waves.cosines, &waves.sines}) {
    if (dft.inverse) *matrix = m.add("Div", {*matrix, m.cast(length, dtype)});
    if (is_mirrored) *matrix = m.add("Mul", {*matrix, weights_of(m, elements, length, dtype)});
  }
  return waves;
}

}  // namespace

ValueId spectrum_of(const NodeMaker& make, const SpectrumOfExtent& dft) {
  Maker m(make);
  const DType dtype = dft.dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  const Waves waves = waves_of(m, dft, dtype);
  const ValueId x = m.cast(dft.x, dtype);
  // The axis goes last, and back.
  std::vector<int64_t> there, back(static_cast<size_t>(dft.rank - 1));
  for (int64_t d = 0; d + 1 < dft.rank; ++d) {
    if (d != dft.axis) there.push_back(d);
  }
  there.push_back(dft.axis);
  for (size_t d = 0; d < there.size(); ++d)
    back[static_cast<size_t>(there[d])] = static_cast<int64_t>(d);
  const auto numbers = [&](int64_t which) {
    const ValueId part = m.add("Gather", {x, m.integer(which)}, {{"axis", dft.rank - 1}});
    return m.add("Transpose", {part}, {{"perm", there}});
  };
  const auto result = [&](ValueId bins) {
    return m.add("Unsqueeze", {m.add("Transpose", {bins}, {{"perm", back}}), m.list(-1)});
  };
  const ValueId real = numbers(0), imaginary = dft.is_complex ? numbers(1) : kNoValue;
  // (a + bi)(cos + sin i), of which only the first part is asked for where the result is real.
  ValueId first = m.add("MatMul", {real, waves.cosines});
  if (dft.is_complex) first = m.add("Sub", {first, m.add("MatMul", {imaginary, waves.sines})});
  if (dft.onesided && dft.inverse) return m.cast(result(first), dft.dtype);
  ValueId second = m.add("MatMul", {real, waves.sines});
  if (dft.is_complex) second = m.add("Add", {second, m.add("MatMul", {imaginary, waves.cosines})});
  const ValueId both = m.add("Concat", {result(first), result(second)}, {{"axis", int64_t{-1}}});
  return m.cast(both, dft.dtype);
}

ValueId divided_by_root(const NodeMaker& make, ValueId x, DType dtype, int64_t axis) {
  Maker m(make);
  const DType type = dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  const ValueId root = m.add("Sqrt", {m.cast(m.extent(x, axis), type)});
  return m.add("Mul", {x, m.cast(m.add("Reciprocal", {root}), dtype)});
}

std::vector<ValueId> parts_of_extent(const NodeMaker& make, ValueId x, int64_t axis,
                                     int64_t count) {
  Maker m(make);
  // A number of the run: extents that follow from sizes grow with them, and those of the last parts
  // do not.
  const ValueId extent = m.add("hone.Extent", {x}, {{"axis", axis}});
  const ValueId whole = m.add("Add", {extent, m.integer(count - 1)});
  const ValueId length = m.add("Div", {whole, m.integer(count)});
  std::vector<ValueId> parts;
  ValueId begin = m.list(0);
  for (int64_t i = 1; i <= count; ++i) {
    const ValueId end = m.add("Min", {m.add("Mul", {length, m.integer(i)}), extent});
    parts.push_back(m.add("Slice", {x, begin, end, m.list(axis)}));
    begin = end;
  }
  return parts;
}

}  // namespace hone::graph
