#include "hone/ir/interpreter_memory.h"

#include <algorithm>
#include <limits>

#include "hone/ir/scalar.h"
#include "hone/tensor/small_types.h"

namespace hone::ir {
namespace {

constexpr int64_t kMaxCells = int64_t{1} << 28;  // 2 GiB for all buffers together
constexpr int64_t kGarbage = 0x5A5A5A5A5A5A5A5A;

Cell garbage(DType type) {
  if (is_float(type)) return {.f = std::numeric_limits<double>::quiet_NaN()};
  return {.i = wrap_int(type, kGarbage)};
}

bool is_wide_int(DType type) { return type == DType::kI64 || type == DType::kU64; }

void copy_in(const Tensor& tensor, std::vector<Cell>& cells) {
  const auto n = static_cast<int64_t>(cells.size());
  if (is_wide_int(tensor.dtype())) {
    const auto data = tensor.as<int64_t>();
    for (int64_t i = 0; i < n; ++i) cells[i].i = data[i];
  } else if (is_float(tensor.dtype())) {
    for (int64_t i = 0; i < n; ++i) cells[i].f = tensor.at(i);
  } else if (is_small(tensor.dtype())) {  // as bytes
    const auto data = tensor.as<uint8_t>();
    for (int64_t i = 0; i < n; ++i) cells[i].i = wrap_int(stored_type(tensor.dtype()), data[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) cells[i].i = static_cast<int64_t>(tensor.at(i));
  }
}

void copy_out(const std::vector<Cell>& cells, Tensor& tensor) {
  const auto n = static_cast<int64_t>(cells.size());
  if (is_wide_int(tensor.dtype())) {
    const auto data = tensor.as<int64_t>();
    for (int64_t i = 0; i < n; ++i) data[i] = cells[i].i;
  } else if (is_float(tensor.dtype())) {
    for (int64_t i = 0; i < n; ++i) tensor.set(i, cells[i].f);
  } else if (is_small(tensor.dtype())) {
    const auto data = tensor.as<uint8_t>();
    for (int64_t i = 0; i < n; ++i) data[i] = static_cast<uint8_t>(cells[i].i);
  } else {
    for (int64_t i = 0; i < n; ++i) tensor.set(i, static_cast<double>(cells[i].i));
  }
}

}  // namespace

Status Memory::allocate() {
  int64_t total = 0;
  for (const BufferPtr& buffer : code_.buffers) {
    const bool empty = std::count(buffer->shape.begin(), buffer->shape.end(), 0) > 0;
    int64_t n = empty ? 0 : 1;
    for (int64_t d : buffer->shape) {
      if (d < 0 || (d > 0 && n > kMaxCells / d))
        return invalid("buffer {} of shape {} is too large", buffer->name,
                       to_string(buffer->shape));
      n *= d;
    }
    total += n;
    if (total > kMaxCells)
      return invalid("the buffers have more than {} elements together", kMaxCells);
    storage_.push_back({buffer, std::vector<Cell>(n, garbage(buffer->dtype))});
  }
  return ok_status();
}

Status Memory::fill(const Program& program, std::span<Tensor> args) {
  if (args.size() != program.params.size()) {
    return invalid("program {} takes {} arguments, got {}", program.name, program.params.size(),
                   args.size());
  }
  HONE_RETURN_IF_ERROR(allocate());
  for (size_t i = 0; i < args.size(); ++i) {
    const Buffer& buffer = *program.params[i].buffer;
    const Role role = program.params[i].role;
    std::vector<Cell>& cells = storage_[i].cells;
    if (!buffer.values.empty()) {
      if (buffer.values.size() != cells.size())
        return invalid("{} has {} values, expected {}", buffer.name, buffer.values.size(),
                       cells.size());
      for (size_t k = 0; k < cells.size(); ++k) {
        cells[k] = is_float(buffer.dtype) ? Cell{.f = static_cast<double>(buffer.values[k])}
                                          : Cell{.i = float_to_int(buffer.dtype, buffer.values[k])};
      }
      continue;
    }
    const bool type_fits =
        stored_type(args[i].dtype()) == buffer.dtype ||
        (options_.float64 && is_float(buffer.dtype) && args[i].dtype() == DType::kF64);
    if (!type_fits || args[i].shape() != buffer.shape) {
      return invalid("argument {} is {}{}, expected {}{}", buffer.name, dtype_name(args[i].dtype()),
                     to_string(args[i].shape()), dtype_name(buffer.dtype), to_string(buffer.shape));
    }
    const bool given = role == Role::kInput || role == Role::kConstant ||
                       (options_.keep_outputs && role == Role::kOutput) ||
                       (role == Role::kPacked && options_.skip_prepare);
    if (given) copy_in(args[i], cells);
  }
  return ok_status();
}

void Memory::copy_results(const Program& program, std::span<Tensor> args) const {
  for (size_t i = 0; i < args.size(); ++i) {
    const Role role = program.params[i].role;
    if (role != Role::kInput && role != Role::kConstant) copy_out(storage_[i].cells, args[i]);
  }
}

Status Memory::call(const ExternCall& call) {
  if (!options_.externs || !options_.externs->contains(call.name)) {
    return {hone::Code::kNotFound, fmt::format("extern function {} is not registered", call.name)};
  }
  std::vector<Tensor> args;
  for (int32_t b : call.buffers) {
    const Storage& s = storage_[b];
    args.emplace_back(s.buffer->dtype, s.buffer->shape);
    copy_out(s.cells, args.back());
  }
  HONE_RETURN_IF_ERROR(options_.externs->find(call.name)->second(args));
  for (size_t i = 0; i < args.size(); ++i) {
    Storage& s = storage_[call.buffers[i]];
    if (args[i].dtype() != s.buffer->dtype || args[i].shape() != s.buffer->shape) {
      return invalid("extern function {} changed the shape of {}", call.name, s.buffer->name);
    }
    copy_in(args[i], s.cells);
  }
  return ok_status();
}

void Memory::fill_with_garbage(int32_t buffer) {
  Storage& s = storage_[buffer];
  const bool is_signal = s.buffer->scope == Scope::kSignal;
  std::fill(s.cells.begin(), s.cells.end(), is_signal ? Cell{.i = 0} : garbage(s.buffer->dtype));
}

}  // namespace hone::ir
