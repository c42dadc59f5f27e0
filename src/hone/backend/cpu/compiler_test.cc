#include "hone/backend/cpu/compiler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <thread>

#include "hone/backend/cpu/sample_programs_testing.h"
#include "hone/backend/cpu/test_support.h"
#include "hone/ir/interpreter.h"
#include "hone/target/target.h"

namespace hone::backend::cpu {
namespace {

using ir::BufferPtr;
using ir::constant;
using ir::Expr;
using ir::ForKind;
using ir::Op;
using ir::Scope;
using ir::Stmt;
using ir::variable;
using ir::VarPtr;

// Out[v] = f(In[v]) for n elements.
ir::Program map_program(int64_t n, DType in, DType out, ForKind kind,
                        const std::function<Expr(const Expr&)>& f) {
  const auto x = ir::make_buffer("x", in, {n});
  const auto y = ir::make_buffer("y", out, {n});
  const auto v = ir::make_var("v");
  return program_of(
      {{x, ir::Role::kInput}, {y, ir::Role::kOutput}},
      loop(v, n, kind, {ir::make_store(y, {variable(v)}, f(ir::load(x, {variable(v)})))}));
}

TEST(compile, every_vector_length_maps_and_reduces) {
  for (int64_t n = 1; n <= 40; ++n) {
    EXPECT_EQ(compare_with_interpreter(map_program(n, DType::kF32, DType::kF32, kVector,
                                                   [](const Expr& x) { return x * x + x; }),
                                       1),
              "");
    for (const Op op : {Op::kAdd, Op::kMin, Op::kMax}) {
      const auto x = ir::make_buffer("x", DType::kF32, {n});
      const auto s = ir::make_buffer("s", DType::kF32, {});
      const auto v = ir::make_var("v");
      const Stmt init = ir::make_store(s, {}, ir::constant_float(0.5));
      const Stmt body = loop(
          v, n, kVector,
          {ir::make_store(s, {}, ir::make(op, {ir::load(s, {}), ir::load(x, {variable(v)})}))});
      EXPECT_EQ(compare_with_interpreter(program_of({{x, ir::Role::kInput}, {s, ir::Role::kOutput}},
                                                    ir::make_block({init, body})),
                                         2),
                "");
    }
  }
}

TEST(compile, long_vectors_loop_over_chunks) {
  for (const int64_t n : {129, 255, 1000, 4096}) {
    const auto x = ir::make_buffer("x", DType::kF32, {n});
    const auto y = ir::make_buffer("y", DType::kF32, {n});
    const auto s = ir::make_buffer("s", DType::kF32, {});
    const auto v = ir::make_var("v");
    const Stmt body =
        loop(v, n, kVector,
             {ir::make_store(
                  s, {}, ir::load(s, {}) + ir::load(x, {variable(v)}) * ir::load(x, {variable(v)})),
              ir::make_store(y, {variable(v)}, ir::load(x, {variable(v)}) * 2)});
    EXPECT_EQ(
        compare_with_interpreter(
            program_of({{x, ir::Role::kInput}, {y, ir::Role::kOutput}, {s, ir::Role::kOutput}},
                       ir::make_block({ir::make_store(s, {}, ir::constant_float(0)), body})),
            3),
        "");
  }
}

TEST(compile, gemm_tiles_of_every_shape) {
  for (const int64_t tile_m : {1, 2, 5}) {
    for (const int64_t lanes : {1, 3, 4, 6, 7, 8, 12, 15, 16, 17, 20, 24, 31, 32}) {
      for (const int64_t vectors : {1, 2}) {
        const int64_t tile_n = lanes * vectors;
        EXPECT_EQ(compare_with_interpreter(
                      gemm_program({tile_m * 2, tile_n * 2, 9, tile_m, tile_n, lanes, 3}), 4),
                  "");
      }
    }
  }
}

TEST(compile, convolution_tiles) {
  EXPECT_EQ(compare_with_interpreter(conv_program({3, 8, 5, 32, 4, 16, 16}), 5), "");
  EXPECT_EQ(compare_with_interpreter(conv_program({2, 6, 3, 14, 3, 7, 7}), 6), "");
}

// Memory outside the buffers must not be accessed; unguarded loads of the padding would be far
// outside.
TEST(compile, guards_and_selects_read_only_what_is_chosen) {
  const int64_t huge = int64_t{1} << 40;
  const auto x = ir::make_buffer("x", DType::kF32, {23});
  const auto y = ir::make_buffer("y", DType::kF32, {4, 32});
  const auto i = ir::make_var("i");
  const auto v = ir::make_var("v");
  const Expr at = variable(i) * 8 + variable(v);
  const auto far = [&](const Expr& inside, const Expr& index) {
    return ir::select(inside, index, index + huge);
  };
  const Expr zero = ir::constant_float(0);
  const Expr uniform = ir::less(variable(i), constant(2));
  const Expr varying = ir::less(at, constant(23));
  for (const int64_t n : {1, 5, 8, 16, 30, 32}) {
    const std::vector<Stmt> stores = {
        ir::make_store(y, {variable(i), variable(v)},
                       ir::select(varying, ir::load(x, {far(varying, at)}), zero)),
        ir::make_store(y, {variable(i), variable(v)},
                       ir::select(uniform, ir::load(x, {far(uniform, variable(i))}), zero)),
        ir::make_store(
            y, {variable(i), variable(v)},
            ir::select(uniform, ir::make(Op::kExp, {ir::load(x, {far(uniform, variable(i))})}),
                       zero)),
        ir::make_store(y, {variable(i), variable(v)},
                       ir::select(varying, ir::load(x, {far(varying, variable(i))}), zero)),
        ir::make_store(y, {variable(i), variable(v)},
                       ir::select(varying, zero,
                                  ir::load(y, {far(ir::less_equal(constant(23), at), variable(i)),
                                               variable(v)}))),
        ir::make_if(varying, {ir::make_store(y, {variable(i), variable(v)},
                                             ir::load(x, {far(varying, at)}))}),
        ir::make_if(ir::logical_and(uniform, ir::less_equal(constant(3), at)),
                    {ir::make_store(y, {variable(i), variable(v)},
                                    ir::load(x, {far(uniform, variable(i))}))}),
        ir::make_if(varying, {ir::make_store(y, {constant(0), far(varying, variable(i))},
                                             ir::load(x, {variable(i)}))}),
        ir::make_if(varying, {ir::make_store(y, {constant(1), variable(i)},
                                             ir::load(y, {constant(1), variable(i)}) +
                                                 ir::load(x, {far(varying, at)}))})};
    for (size_t s = 0; s < stores.size(); ++s) {
      const auto j = ir::make_var("j");
      const auto w = ir::make_var("w");
      const Stmt clear =
          loop(j, 4, kSerial,
               {loop(w, 32, kVector, {ir::make_store(y, {variable(j), variable(w)}, zero)})});
      const Stmt nest = loop(i, 4, kSerial, {loop(v, n, kVector, {stores[s]})});
      ASSERT_EQ(compare_with_interpreter(program_of({{x, ir::Role::kInput}, {y, ir::Role::kOutput}},
                                                    ir::make_block({clear, nest})),
                                         11),
                "")
          << "store " << s << ", " << n << " lanes";
    }
  }
}

TEST(compile, buffers_inside_a_vectorized_loop_are_private_to_the_lane) {
  for (const Scope scope : {Scope::kRegister, Scope::kStack, Scope::kThread}) {
    for (const int64_t n : {5, 16, 37}) {
      const auto x = ir::make_buffer("x", DType::kF32, {n, 6});
      const auto y = ir::make_buffer("y", DType::kF32, {n});
      const auto best = ir::make_buffer("best", DType::kF32, {3}, scope);
      const auto v = ir::make_var("v");
      const auto k = ir::make_var("k");
      const Expr which = ir::floormod(variable(k), 3);
      const Stmt body = ir::make_alloc(
          best,
          {loop(k, 3, ForKind::kUnrolled,
                {ir::make_store(best, {variable(k)}, ir::constant_float(0))}),
           loop(k, 6, kSerial,
                {ir::make_store(
                    best,
                    {which}, ir::load(best, {which}) + ir::load(x, {variable(v), variable(k)}))}),
           ir::make_store(y, {variable(v)},
                          ir::load(best, {constant(0)}) -
                              ir::load(best, {constant(1)}) * ir::load(best, {constant(2)}))});
      EXPECT_EQ(compare_with_interpreter(program_of({{x, ir::Role::kInput}, {y, ir::Role::kOutput}},
                                                    loop(v, n, kVector, {body})),
                                         12),
                "");
    }
  }
}

TEST(compile, scratch_and_stack_buffers_nest) {
  const auto x = ir::make_buffer("x", DType::kF32, {8, 100});
  const auto y = ir::make_buffer("y", DType::kF32, {8, 100});
  const auto a = ir::make_buffer("a", DType::kF32, {100}, Scope::kThread);
  const auto b = ir::make_buffer("b", DType::kF32, {100}, Scope::kThread);
  const auto c = ir::make_buffer("c", DType::kF32, {30'000}, Scope::kStack);
  const auto t = ir::make_var("t");
  const auto copy = [&](const BufferPtr& to, const BufferPtr& from, bool tile_to, bool tile_from) {
    const auto v = ir::make_var("v");
    const auto at = [&](bool tile) {
      return tile ? std::vector<Expr>{variable(t), variable(v)} : std::vector<Expr>{variable(v)};
    };
    return loop(v, 100, kVector,
                {ir::make_store(to, at(tile_to), ir::load(from, at(tile_from)) + 1)});
  };
  const Stmt body =
      ir::make_alloc(a, {copy(a, x, false, true),
                         ir::make_alloc(b, {copy(b, a, false, false), copy(a, b, false, false)}),
                         ir::make_alloc(c, {copy(c, a, false, false), copy(y, c, true, false)})});
  const auto program = program_of({{x, ir::Role::kInput}, {y, ir::Role::kOutput}},
                                  loop(t, 8, ForKind::kParallel, {body}));
  EXPECT_EQ(compare_with_interpreter(program, 13), "");
  const auto code = compile(program, target::find("x86-64-avx2")->cpu());
  ASSERT_TRUE(code.ok());
  EXPECT_GE(code->scratch_bytes, 400 + 120'000);
  EXPECT_EQ(code->phases[0].num_tiles, 8);
}

TEST(compile, known_values_fold) {
  auto known = std::make_shared<ir::Buffer>(*ir::make_buffer("B", DType::kF32, {3, 3}));
  known->values = {1, 0, -1, 0.5, 2, 0, -1, 1, 0};
  const BufferPtr matrix = known;
  const auto x = ir::make_buffer("x", DType::kF32, {3, 16});
  const auto y = ir::make_buffer("y", DType::kF32, {3, 16});
  const auto acc = ir::make_buffer("acc", DType::kF32, {16}, Scope::kRegister);
  for (const ForKind kind : {ForKind::kUnrolled, kSerial}) {
    const auto i = ir::make_var("i");
    const auto k = ir::make_var("k");
    const auto v = ir::make_var("v");
    const Stmt update =
        loop(k, 3, kind,
             {loop(v, 16, kVector,
                   {ir::make_store(acc, {variable(v)},
                                   ir::load(acc, {variable(v)}) +
                                       ir::load(matrix, {variable(i), variable(k)}) *
                                           ir::load(x, {variable(k), variable(v)}))})});
    const Stmt body = loop(
        i, 3, kind,
        {ir::make_alloc(
            acc, {loop(v, 16, kVector, {ir::make_store(acc, {variable(v)}, ir::constant_float(0))}),
                  update,
                  loop(v, 16, kVector,
                       {ir::make_store(y, {variable(i), variable(v)},
                                       ir::load(acc, {variable(v)}))})})});
    const auto program = program_of(
        {{x, ir::Role::kInput}, {matrix, ir::Role::kConstant}, {y, ir::Role::kOutput}}, body);
    EXPECT_EQ(compare_with_interpreter(program, 14), "");
    CompileOptions options;
    options.keep_assembly = true;
    const auto code = compile(program, target::find("x86-64-avx512")->cpu(), options);
    ASSERT_TRUE(code.ok());
    // Only 0.5 and 2 are left, and doubling is an addition.
    const bool multiplies = code->assembly.find("vmulps") != std::string::npos ||
                            code->assembly.find("vfmadd") != std::string::npos;
    EXPECT_TRUE(multiplies);
    EXPECT_EQ(code->assembly.find("vfnmadd"), std::string::npos);
  }
}

TEST(compile, loops_bounded_by_outer_loops_and_loads) {
  const auto x = ir::make_buffer("x", DType::kF32, {12, 12});
  const auto n = ir::make_buffer("n", DType::kI64, {12});
  const auto y = ir::make_buffer("y", DType::kF32, {12});
  const auto i = ir::make_var("i");
  const auto j = ir::make_var("j");
  for (const Expr& extent :
       {variable(i), ir::load(n, {variable(i)}), ir::min(variable(i) * 2, constant(7))}) {
    const Stmt inner = ir::make_for(
        j, constant(1), extent, kSerial,
        {ir::make_store(y, {variable(i)},
                        ir::load(y, {variable(i)}) + ir::load(x, {variable(i), variable(j)}))});
    const Stmt body =
        loop(i, 12, kSerial, {ir::make_store(y, {variable(i)}, ir::constant_float(0)), inner});
    EXPECT_EQ(compare_with_interpreter(
                  program_of({{x, ir::Role::kInput}, {n, ir::Role::kInput}, {y, ir::Role::kOutput}},
                             body),
                  15),
              "");
  }
}

TEST(compile, every_phase_is_a_function) {
  const auto x = ir::make_buffer("x", DType::kF32, {6});
  const auto p = ir::make_buffer("p", DType::kF32, {6});
  const auto y = ir::make_buffer("y", DType::kF32, {6});
  const auto i = ir::make_var("i");
  ir::Program program{
      "phases", {{x, ir::Role::kConstant}, {p, ir::Role::kPacked}, {y, ir::Role::kOutput}}, {}};
  program.phases.push_back(
      {loop(i, 6, kSerial,
            {ir::make_store(p, {variable(i)}, ir::load(x, {constant(5) - variable(i)}))}),
       true});
  program.phases.push_back(
      {loop(i, 6, ForKind::kParallel,
            {ir::make_prefetch(p, {variable(i)}),
             ir::make_store(y, {variable(i)}, ir::load(p, {variable(i)}) * 2)}),
       false});
  EXPECT_EQ(compare_with_interpreter(program, 16), "");
  CompileOptions options;
  options.symbol_prefix = "mine";
  const auto code = compile(program, target::find("x86-64-avx2")->cpu(), options);
  ASSERT_TRUE(code.ok());
  ASSERT_EQ(code->phases.size(), 2u);
  EXPECT_EQ(code->phases[0].symbol, "mine_0");
  EXPECT_TRUE(code->phases[0].prepare);
  EXPECT_EQ(code->phases[0].num_tiles, 1);
  EXPECT_EQ(code->phases[1].num_tiles, 6);
  EXPECT_GT(code->text_bytes, 0);
}

extern "C" __attribute__((visibility("default"), used)) void hone_test_extern(void** args) {
  static_cast<float*>(args[1])[0] = static_cast<float*>(args[0])[3] + 1;
}

TEST(compile, extern_statements_call_a_symbol) {
  const auto x = ir::make_buffer("x", DType::kF32, {4});
  const auto y = ir::make_buffer("y", DType::kF32, {1});
  const auto program = program_of({{x, ir::Role::kInput}, {y, ir::Role::kOutput}},
                                  ir::make_extern("hone_test_extern", {x, y}));
  for (const target::Target& target : runnable_targets()) {
    std::vector<Tensor> args = ir::random_arguments(program, 17);
    const Status status = run_machine_code(program, target, args);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(args[1].as<float>()[0], args[0].as<float>()[3] + 1);
  }
}

TEST(compile, code_stays_within_the_target) {
  CompileOptions options;
  options.keep_assembly = true;
  const auto program = gemm_program({12, 32, 8, 6, 16, 8});
  const auto avx2 = compile(program, target::find("x86-64-avx2")->cpu(), options);
  ASSERT_TRUE(avx2.ok());
  EXPECT_EQ(avx2->assembly.find("zmm"), std::string::npos);
  EXPECT_EQ(avx2->assembly.find("{1to"), std::string::npos);
  EXPECT_NE(avx2->assembly.find("ymm"), std::string::npos);
  const auto neon = compile(program, target::find("aarch64-neon")->cpu(), options);
  ASSERT_TRUE(neon.ok()) << neon.status().message();
  EXPECT_NE(neon->assembly.find("fmla"), std::string::npos);
  EXPECT_EQ(neon->object.substr(1, 3), "ELF");
  target::Cpu unknown = target::find("x86-64-avx2")->cpu();
  unknown.triple = "riscv64-linux-gnu";
  EXPECT_EQ(compile(program, unknown).status().code(), Code::kUnsupported);
}

TEST(compile, the_register_tile_stays_in_registers) {
  CompileOptions options;
  options.keep_assembly = true;
  const auto program = gemm_program({14, 32, 64, 14, 32, 16});
  const auto code = compile(program, target::find("x86-64-avx512")->cpu(), options);
  ASSERT_TRUE(code.ok());
  EXPECT_EQ(code->assembly.find("rsp"), code->assembly.rfind("rsp"));
  EXPECT_EQ(registers_needed(program, target::find("x86-64-avx512")->cpu()), 30);
  EXPECT_EQ(registers_needed(program, target::find("x86-64-avx2")->cpu()), 58);
}

TEST(compile, too_much_code_is_an_error) {
  CompileOptions options;
  options.max_statements = 10;
  const auto code = compile(gemm_program({14, 32, 64, 14, 32, 16}),
                            target::find("x86-64-avx512")->cpu(), options);
  ASSERT_FALSE(code.ok());
  EXPECT_EQ(code.status().message(), "more than 10 statements after unrolling");
  options = {.max_instructions = 100};
  const auto longer = compile(gemm_program({14, 32, 64, 14, 32, 16}),
                              target::find("x86-64-avx512")->cpu(), options);
  ASSERT_FALSE(longer.ok());
  EXPECT_EQ(longer.status().message(), "more than 100 instructions after unrolling");
}

TEST(compile, threads_compile_at_once_and_equal_code_comes_out) {
  const auto target = *target::find("x86-64-avx2");
  const auto program = gemm_program({6, 16, 32, 6, 16, 8});
  std::vector<std::string> objects(4);
  std::vector<std::thread> threads;
  for (std::string& object : objects) {
    threads.emplace_back([&] {
      for (int i = 0; i < 3; ++i) object = compile(program, target.cpu())->object;
    });
  }
  for (std::thread& t : threads) t.join();
  for (const std::string& object : objects) EXPECT_EQ(object, objects[0]);
}

TEST(load, bad_objects_are_errors) {
  EXPECT_FALSE(LoadedCode::load("not an object").ok());
  const auto x = ir::make_buffer("x", DType::kF32, {4});
  const auto code = compile(
      program_of({{x, ir::Role::kOutput}}, ir::make_extern("no_such_function_anywhere", {x})),
      target::find("x86-64-avx2")->cpu());
  ASSERT_TRUE(code.ok());
  const auto loaded = LoadedCode::load(code->object);
  ASSERT_FALSE(loaded.ok());
  EXPECT_NE(loaded.status().message().find("no_such_function_anywhere"), std::string::npos);
}

}  // namespace
}  // namespace hone::backend::cpu
