#include "program.h"

#include <cblas.h>
#include <omp.h>

#include <cstring>

namespace hone::rivals {

using dnnl::memory;

namespace {

constexpr auto kFloat = memory::data_type::f32;

Dims dense_strides(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

}  // namespace

Program::Program(const Json& spec, const float* const* arrays)
    : threads_(spec.at("threads")), format_(spec.at("format")), outputs_(spec.at("outputs")) {
  omp_set_num_threads(threads_);
  openblas_set_num_threads(threads_);
  int index = 0;
  for (const Json& tensor : spec.at("tensors")) {
    const std::string name = tensor.at("name");
    memory& made = values_.emplace(name, memory(dense(tensor.at("dims")), engine_)).first->second;
    std::memcpy(made.get_data_handle(), arrays[index++], made.get_desc().get_size());
    constant_[name] = tensor.at("constant");
  }
  using Build = void (Program::*)(const Json&);
  static const std::map<std::string, Build> builders = {
      {"conv", &Program::convolution},
      {"deconv", &Program::deconvolution},
      {"matmul", &Program::matmul},
      {"inner_product", &Program::inner_product},
      {"sgemm", &Program::sgemm},
      {"softmax", &Program::softmax},
      {"layer_normalization", &Program::layer_normalization},
      {"pool", &Program::pool},
      {"eltwise", &Program::eltwise},
      {"binary", &Program::binary},
      {"transpose", &Program::transpose}};
  for (const Json& op : spec.at("ops")) (this->*builders.at(op.at("op")))(op);
}

memory::desc Program::dense(const Dims& dims) const { return {dims, kFloat, dense_strides(dims)}; }

memory::desc Program::wanted(const Dims& dims) const {
  using Tag = memory::format_tag;
  if (format_ == "any") return {dims, kFloat, Tag::any};
  // By the number of axes beside batch and channels: channels last, in blocks of 8, of 16.
  static constexpr Tag kTags[][3] = {{Tag::acb, Tag::aBc8b, Tag::aBc16b},
                                     {Tag::acdb, Tag::aBcd8b, Tag::aBcd16b},
                                     {Tag::acdeb, Tag::aBcde8b, Tag::aBcde16b}};
  if (format_ == "plain" || dims.size() < 3 || dims.size() > 5) return dense(dims);
  const Tag* tags = kTags[dims.size() - 3];
  return {dims, kFloat, format_ == "nhwc" ? tags[0] : format_ == "blocked8" ? tags[1] : tags[2]};
}

memory& Program::value(const std::string& name) { return values_.at(name); }

memory Program::in_layout(const std::string& name, const memory::desc& layout) {
  memory from = value(name);
  // A view under other dimensions of the same elements.
  if (from.get_desc().dims() != layout.dims())
    from = memory(dense(layout.dims()), engine_, from.get_data_handle());
  if (from.get_desc() == layout) return from;
  memory to(layout, engine_);
  const dnnl::reorder reorder(from, to);
  auto run = [this, reorder, from, to]() mutable {
    reorder.execute(stream_, from, to);
    stream_.wait();
  };
  if (constant_[name]) {
    run();
  } else {
    steps_.push_back({true, run});
  }
  return to;
}

// {"name": ..., "dims": ..., "strides": ...}: other dimensions over the dense elements of a tensor;
// a new one is defined.
memory Program::strided(const Json& operand, const std::string& name) {
  const Dims dims = operand.at("dims");
  const Dims strides =
      operand.contains("strides") ? operand.at("strides").get<Dims>() : dense_strides(dims);
  const auto found = values_.find(name);
  const memory base = found == values_.end()
                          ? define(name, dense(operand.at("whole")))
                          : in_layout(name, dense(found->second.get_desc().dims()));
  return memory(memory::desc(dims, kFloat, strides), engine_, base.get_data_handle());
}

memory Program::define(const std::string& name, const memory::desc& layout) {
  return values_.insert_or_assign(name, memory(layout, engine_)).first->second;
}

memory Program::result(const Json& op, const memory& from) {
  return op.at("out") == op.at("in") ? from : define(op.at("out"), from.get_desc());
}

void Program::add(const dnnl::primitive_desc_base& description, const dnnl::primitive& primitive,
                  std::unordered_map<int, memory> arguments) {
  const char* chosen = description.impl_info_str();
  if (description_.find(chosen) == std::string::npos) {
    if (!description_.empty()) description_ += ' ';
    description_ += chosen;
  }
  steps_.push_back({false, [this, primitive, arguments = std::move(arguments)] {
                      primitive.execute(stream_, arguments);
                    }});
}

void Program::run(int times) {
  omp_set_num_threads(threads_);
  openblas_set_num_threads(threads_);
  for (int i = 0; i < times; ++i) {
    for (const Step& step : steps_)
      if (!step.free) step.run();
    stream_.wait();
  }
}

void Program::check(int index, float* output) {
  omp_set_num_threads(threads_);
  openblas_set_num_threads(threads_);
  for (const Step& step : steps_) step.run();
  stream_.wait();
  memory from = value(outputs_.at(static_cast<size_t>(index)));
  memory to(dense(from.get_desc().dims()), engine_, output);
  dnnl::reorder(from, to).execute(stream_, from, to);
  stream_.wait();
}

}  // namespace hone::rivals
