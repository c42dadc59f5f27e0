#include "hone/remote/model_messages.h"

#include <algorithm>

#include "hone/remote/message_fields.h"

namespace hone::remote {

static void fields(auto& a, Is<ModelTensor> auto& m) {
  a(m.name, m.dtype, m.shape, m.dims, m.least);
}
static void fields(auto& a, Is<StepTime> auto& m) {
  a(m.name, m.kernel_class, m.kernel, m.seconds, m.flops, m.least_flops, m.bytes);
}
static void fields(auto& a, Is<LoadModel> auto& m) { a(m.name, m.threads, m.time_limit); }
static void fields(auto& a, Is<ModelFacts> auto& m) {
  a(m.inputs, m.outputs, m.device, m.device_bytes);
}
static void fields(auto& a, Is<NamedShape> auto& m) { a(m.is_output, m.index, m.shape); }
static void fields(auto& a, Is<Part> auto& m) { a(m.offset, m.bytes); }
static void fields(auto& a, Is<RunModel> auto& m) { a(m.most, m.seconds, m.profile, m.inputs); }
static void fields(auto& a, Is<RunReport> auto& m) {
  a(m.seconds, m.steps, m.step_seconds, m.shapes, m.outputs, m.bytes, m.digest, m.device_bytes);
}

bool is_sound(const Shape& shape) {
  constexpr int64_t kMost = int64_t{1} << 40;  // elements: far beyond those of any array
  int64_t elements = 1;
  for (const int64_t extent : shape) {
    if (extent < 0 || extent > kMost / elements) return false;
    elements *= std::max<int64_t>(extent, 1);
  }
  return true;
}

bool lies_in(const Part& part, int64_t bytes) {
  return part.offset >= 0 && part.bytes >= 0 && part.bytes <= bytes &&
         part.offset <= bytes - part.bytes;
}

namespace {

bool are_sound(const std::vector<ModelTensor>& tensors) {
  for (const ModelTensor& tensor : tensors) {
    const bool fits = (tensor.dims.empty() || tensor.dims.size() == tensor.shape.size()) &&
                      (tensor.least.empty() || tensor.least.size() == tensor.shape.size());
    if (!fits || dtype_bytes(tensor.dtype) == 0 || !is_sound(tensor.shape)) return false;
  }
  return true;
}

template <typename T>
bool fits(const T&) {
  return true;
}
template <>
bool fits(const ModelFacts& m) {
  return are_sound(m.inputs) && are_sound(m.outputs);
}
template <>
bool fits(const NamedShape& m) {
  return is_sound(m.shape);
}
template <>
bool fits(const RunReport& m) {
  if (m.seconds.empty() || m.shapes.size() != m.outputs.size()) return false;
  if (!m.steps.empty() && m.step_seconds.size() != m.steps.size() * m.seconds.size()) return false;
  return std::all_of(m.shapes.begin(), m.shapes.end(), is_sound) &&
         std::all_of(m.outputs.begin(), m.outputs.end(),
                     [&](const Part& part) { return lies_in(part, m.bytes); });
}

}  // namespace

template <typename T>
std::string to_body(const T& value) {
  Put put;
  fields(put, value);
  return put.bytes();
}

template <typename T>
Result<T> from_body(std::string_view bytes) {
  T value;
  Get get(bytes);
  fields(get, value);
  if (!get.done() || !fits(value)) return invalid("a message about a model that is none");
  return value;
}

template std::string to_body(const LoadModel&);
template std::string to_body(const ModelFacts&);
template std::string to_body(const NamedShape&);
template std::string to_body(const RunModel&);
template std::string to_body(const RunReport&);
template std::string to_body(const Part&);
template Result<LoadModel> from_body(std::string_view);
template Result<ModelFacts> from_body(std::string_view);
template Result<NamedShape> from_body(std::string_view);
template Result<RunModel> from_body(std::string_view);
template Result<RunReport> from_body(std::string_view);
template Result<Part> from_body(std::string_view);

}  // namespace hone::remote
