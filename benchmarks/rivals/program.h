// benchmarks/rivals/program.h - operators of oneDNN and OpenBLAS on named tensors, run one after
// another. A tensor lives in the layout that its last operator wrote. An operator that wants
// another one gets a buffer of its own; the reorder in between runs in check() only. So the rivals
// are charged for operators in the layouts that they like.
#pragma once

#include <nlohmann/json.hpp>

#include <dnnl.hpp>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace hone::rivals {

using Json = nlohmann::json;
using Dims = dnnl::memory::dims;

class Program {
 public:
  // Throws what oneDNN and the JSON library throw.
  Program(const Json& spec, const float* const* arrays);
  void run(int times);
  void check(int index, float* output);
  const std::string& description() const { return description_; }

 private:
  struct Step {
    bool free = false;  // a reorder that only check() runs
    std::function<void()> run;
  };
  dnnl::memory::desc dense(const Dims& dims) const;
  dnnl::memory::desc wanted(const Dims& dims) const;  // in the program's format
  dnnl::memory& value(const std::string& name);
  // The tensor in the layout asked for.
  dnnl::memory in_layout(const std::string& name, const dnnl::memory::desc& layout);
  dnnl::memory strided(const Json& operand, const std::string& name);
  dnnl::memory define(const std::string& name, const dnnl::memory::desc& layout);
  // "out" of an operator that keeps the shape of `from`, "in", which it may have the name of.
  dnnl::memory result(const Json& op, const dnnl::memory& from);
  void add(const dnnl::primitive_desc_base& description, const dnnl::primitive& primitive,
           std::unordered_map<int, dnnl::memory> arguments);
  void append_activation(const Json& op, dnnl::post_ops& after) const;
  dnnl::primitive_attr attributes(const Json& op) const;

  template <typename Primitive>
  void convolve(const Json& op, dnnl::algorithm kind);
  void convolution(const Json& op);
  void deconvolution(const Json& op);
  void matmul(const Json& op);
  void inner_product(const Json& op);
  void sgemm(const Json& op);
  void softmax(const Json& op);
  void layer_normalization(const Json& op);
  void pool(const Json& op);
  void eltwise(const Json& op);
  void binary(const Json& op);
  void transpose(const Json& op);

  int threads_;
  std::string format_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::map<std::string, dnnl::memory> values_;
  std::map<std::string, bool> constant_;
  std::vector<std::string> outputs_;
  std::vector<Step> steps_;
  std::string description_;
};

}  // namespace hone::rivals
