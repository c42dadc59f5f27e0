#include "hone/backend/gpu/print_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "hone/base/assert.h"
#include "hone/ir/simplify.h"

namespace hone::backend::gpu {

using ir::Buffer;
using ir::BufferPtr;
using ir::Expr;

void Memory::add_param(const BufferPtr& buffer, std::string name, bool holds_values) {
  slots_[buffer.get()] = {holds_values ? Place::kValues : Place::kParam, std::move(name), 0,
                          buffer};
}

std::string Memory::declare_array(const BufferPtr& buffer, size_t owned) {
  const std::string& name = context_.names.declare(buffer.get(), buffer->name);
  slots_[buffer.get()] = {Place::kArray, name, owned, buffer};
  std::string out = fmt::format("{} {}", memory_type(context_.dialect, buffer->dtype), name);
  for (size_t d = owned; d < buffer->shape.size(); ++d)
    out += fmt::format("[{}]", std::max<int64_t>(buffer->shape[d], 1));
  return out;
}

void Memory::release(const Buffer& buffer) {
  context_.names.release(&buffer);
  slots_.erase(&buffer);
}

BufferPtr Memory::add_vector(std::string name, DType type, int lanes) {
  const BufferPtr buffer = ir::make_buffer(name, type, {lanes}, ir::Scope::kRegister);
  slots_[buffer.get()] = {Place::kVector, std::move(name), 0, buffer};
  return buffer;
}

const Memory::Slot& Memory::slot(const Buffer& buffer) const {
  const auto it = slots_.find(&buffer);
  HONE_ASSERT(it != slots_.end(), "a buffer is used outside of its scope");
  return it->second;
}

const std::string& Memory::name(const Buffer& buffer) const { return slot(buffer).name; }
bool Memory::holds_values(const Buffer& buffer) const {
  return slot(buffer).place == Place::kValues;
}
bool Memory::is_vector(const Buffer& buffer) const { return slot(buffer).place == Place::kVector; }
bool Memory::is_param(const Buffer& buffer) const { return slot(buffer).place == Place::kParam; }

std::string Memory::component(const Buffer& buffer, const std::vector<Expr>& indices) const {
  const int64_t lane = indices[0]->int_value;
  if (vector_step(context_.dialect, buffer.dtype) == 1)
    return fmt::format(
        "{}.{}", name(buffer),
        buffer.shape[0] > 4 ? fmt::format("s{}", lane) : std::string(1, "xyzw"[lane]));
  const std::string word =
      buffer.shape[0] == 2 ? name(buffer) : fmt::format("{}.{}", name(buffer), "xyzw"[lane / 2]);
  return lane % 2 == 0 ? fmt::format("(ushort){}", word) : fmt::format("(ushort)({} >> 16)", word);
}

Expr Memory::flat_index(const Buffer& buffer, const std::vector<Expr>& indices) const {
  Expr flat = ir::constant(0);
  for (size_t d = 0; d < indices.size(); ++d) flat = flat * buffer.shape[d] + indices[d];
  return ir::simplify(flat, context_.ranges);
}

std::vector<Expr> Memory::subscripts(const BufferPtr& buffer,
                                     const std::vector<Expr>& indices) const {
  const Slot& s = slot(*buffer);
  if (s.place != Place::kArray) return {flat_index(*buffer, indices)};
  return {indices.begin() + static_cast<std::ptrdiff_t>(s.owned), indices.end()};
}

}  // namespace hone::backend::gpu
