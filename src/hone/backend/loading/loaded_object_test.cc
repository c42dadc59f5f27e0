#include "hone/backend/loading/loaded_object.h"

#include <gtest/gtest.h>

#include <cmath>

#include "hone/backend/cpu/compiler.h"
#include "hone/backend/cpu/sample_programs_testing.h"
#include "hone/backend/cpu/test_support.h"
#include "hone/runtime/kernel_abi.h"

namespace hone::backend {
namespace {

std::string object_of(const ir::Program& program) {
  return cpu::compile(program, target::host().cpu())->object;
}

std::vector<Tensor> numbers_for(const ir::Program& program) {
  std::vector<Tensor> tensors;
  for (const ir::Param& param : program.params) {
    Tensor& tensor = tensors.emplace_back(param.buffer->dtype, param.buffer->shape);
    for (int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, 0.25 * static_cast<double>(i % 11));
  }
  return tensors;
}

// The last tensor after the first phase of code that was linked somehow.
Tensor result_of(void* function, const ir::Program& program) {
  std::vector<Tensor> tensors = numbers_for(program);
  std::vector<void*> args;
  for (Tensor& tensor : tensors) args.push_back(tensor.data());
  alignas(64) static char scratch[1 << 16];
  const auto kernel = reinterpret_cast<hone_kernel>(function);
  EXPECT_EQ(kernel(args.data(), scratch, 0, program.phases[0].num_tiles(), 0), 0);
  return tensors.back();
}

void expect_as_linked_by_llvm(const ir::Program& program) {
  const cpu::ObjectCode code = cpu::compile(program, target::host().cpu()).value();
  const std::string& name = code.phases[0].symbol;
  const auto theirs = cpu::LoadedCode::load(code.object);
  const auto ours = LoadedObject::load(code.object);
  ASSERT_TRUE(ours.ok()) << ours.status().message();
  const Tensor expected = result_of((*theirs)->symbol(name), program);
  const Tensor found = result_of((*ours)->symbol(name), program);
  for (int64_t i = 0; i < expected.size(); ++i) ASSERT_EQ(found.at(i), expected.at(i)) << i;
}

// y[i] = op(x[i]), of double, for which LLVM calls libm.
ir::Program map_program(ir::Op op) {
  const auto x = ir::make_buffer("x", DType::kF64, {100}),
             y = ir::make_buffer("y", DType::kF64, {100});
  const auto v = ir::make_var("v");
  return cpu::program_of(
      {{x, ir::Role::kInput}, {y, ir::Role::kOutput}},
      cpu::loop(
          v, 100, cpu::kSerial,
          {ir::make_store(y, {ir::variable(v)}, ir::make(op, {ir::load(x, {ir::variable(v)})}))}));
}

TEST(loaded_object, code_runs_as_when_llvm_links_it) {
  expect_as_linked_by_llvm(
      cpu::gemm_program({.m = 8, .n = 32, .k = 16, .tile_m = 4, .tile_n = 16, .lanes = 16}));
  expect_as_linked_by_llvm(cpu::conv_program({.height = 4,
                                              .width = 8,
                                              .in_channels = 4,
                                              .out_channels = 16,
                                              .tile_w = 4,
                                              .tile_oc = 16,
                                              .lanes = 16}));
}

TEST(loaded_object, code_calls_functions_of_libm) {
  for (const ir::Op op : {ir::Op::kExp, ir::Op::kTanh, ir::Op::kSin, ir::Op::kSqrt})
    expect_as_linked_by_llvm(map_program(op));
}

TEST(loaded_object, a_function_that_is_not_there_is_null) {
  const auto loaded = LoadedObject::load(object_of(map_program(ir::Op::kExp))).value();
  EXPECT_EQ(loaded->symbol("hone_nothing"), nullptr);
}

TEST(loaded_object, files_that_are_cut_off_or_no_objects_are_errors) {
  const std::string object = object_of(map_program(ir::Op::kExp));
  for (size_t size = 0; size < object.size(); size += 7)
    EXPECT_FALSE(LoadedObject::load(object.substr(0, size)).ok()) << size;
  std::string other = object;
  other[18] = 3;  // e_machine
  EXPECT_EQ(LoadedObject::load(other).status().message(), "object: it is for another machine");
  EXPECT_EQ(LoadedObject::load(std::string(4096, 'x')).status().message(),
            "object: it is no relocatable file of ELF");
}

}  // namespace
}  // namespace hone::backend
