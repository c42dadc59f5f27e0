#include "hone/ir/parser.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>

#include "hone/ir/equivalent.h"
#include "hone/ir/gpu/check_barriers.h"
#include "hone/ir/interpreter.h"
#include "hone/ir/printer.h"
#include "hone/ir/random_gpu_program.h"
#include "hone/ir/random_program.h"
#include "hone/ir/simplify.h"
#include "hone/ir/verifier.h"

namespace hone::ir {
namespace {

constexpr std::string_view kExample = R"(program "conv+relu" {
  input X: f32[10, 6]
  constant W: f32[3] = {1.0, -0.5, 1e-08}
  packed Wp: f32[3]
  output Y: f32[8, 6]
  phase prepare {
    for k in 0..3 {
      Wp[k] = W[k]
    }
  }
  phase {
    parallel t in 0..8 {
      alloc register acc: f32[2, 3] {
        unrolled i in 0..2 {
          vectorized v in 0..3 {
            acc[i, v] = 0.0
          }
        }
        for k_1 in 0..3 peel {
          prefetch X[t + k_1 + 1, 0]
          unrolled i_1 in 0..2 {
            vectorized v_1 in 0..3 {
              acc[i_1, v_1] = acc[i_1, v_1] + X[t + k_1, i_1 * 3 + v_1] * Wp[k_1]
            }
          }
        }
        for j in t..+2 - (t % 2) {
          if j < 8 && !(j == 3 || t <= j) {
            Y[j, 0] = 0.0
          }
        }
        for c in 0..6 {
          Y[t, c] = max(acc[c // 3, c % 3], select(t - (c - 1) < 4, rem(X[0, 0], as_f32(i32(t))), f32(c)))
        }
      }
    }
    extern "soft max"(X, Y)
  }
}
)";

Result<Program> parse(std::string_view body) {
  return parse_program(fmt::format(
      "program p {{\n  input X: f32[4, 4]\n  output Y: f32[4]\n  phase {{\n{}\n  }}\n}}", body));
}
std::string error_of(std::string_view body) {
  const Result<Program> p = parse(body);
  return p.ok() ? "no error" : p.status().message();
}

TEST(parser, what_is_printed_reads_the_same) {
  const Result<Program> p = parse_program(kExample);
  ASSERT_TRUE(p.ok()) << p.status().message();
  EXPECT_EQ(p->phases[1].body->kind, StmtKind::kBlock);
  std::string expected(kExample);
  const auto j = expected.find("2 - (t % 2)");
  expected.replace(j, 11, "(2 - t % 2)");
  EXPECT_EQ(print(*p), expected);
  EXPECT_TRUE(equivalent(*p, *parse_program(print(*p))));
}

TEST(parser, the_examples_of_the_documentation_are_programs) {
  std::ifstream file(HONE_IR_DOC);
  std::stringstream doc;
  doc << file.rdbuf();
  const std::string text = doc.str();
  std::vector<int64_t> tiles;
  for (size_t begin = 0; (begin = text.find("```\nprogram", begin)) != std::string::npos;) {
    const size_t end = text.find("```", begin + 3);
    const Result<Program> p =
        parse_program(std::string_view(text).substr(begin + 4, end - begin - 4));
    ASSERT_TRUE(p.ok()) << p.status().message();
    const Status valid = verify(*p), waits = check_barriers(*p);
    EXPECT_TRUE(valid.ok()) << valid.message();
    EXPECT_TRUE(waits.ok()) << waits.message();
    tiles.push_back(p->phases.back().num_tiles());
    begin = end;
  }
  EXPECT_EQ(tiles, (std::vector<int64_t>{392, 64}));
}

TEST(parser, random_programs_round_trip) {
  int64_t characters = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const Program p = seed % 2 == 0 ? random_program(seed) : random_gpu_program(seed);
    const std::string text = print(p);
    characters += static_cast<int64_t>(text.size());
    const Result<Program> q = parse_program(text);
    ASSERT_TRUE(q.ok()) << "seed " << seed << ": " << q.status().message() << "\n" << text;
    ASSERT_TRUE(equivalent(p, *q)) << "seed " << seed << "\n" << text << print(*q);
    ASSERT_EQ(print(*q), text) << "seed " << seed;
    const Program simple = simplify(p);
    ASSERT_TRUE(equivalent(simple, *parse_program(print(simple)))) << "seed " << seed;
  }
  EXPECT_GT(characters, 100'000);
}

TEST(parser, programs_that_differ_are_not_equivalent) {
  const Program p = *parse("for i in 0..4 { for j in 0..4 { Y[i] = X[i, j] } }");
  EXPECT_TRUE(equivalent(p, *parse("for a in 0..4 { for b in 0..4 { Y[a] = X[a, b] } }")));
  for (const char* other : {"for i in 0..4 { for j in 0..4 { Y[i] = X[j, i] } }",
                            "for i in 0..4 { for j in 0..4 { Y[j] = X[i, j] } }",
                            "for i in 0..3 { for j in 0..4 { Y[i] = X[i, j] } }",
                            "for i in 0..4 { unrolled j in 0..4 { Y[i] = X[i, j] } }",
                            "for i in 0..4 { for j in 0..4 { Y[i] = Y[i] } }",
                            "for i in 0..4 { for j in 0..4 peel { Y[i] = X[i, j] } }"}) {
    EXPECT_FALSE(equivalent(p, *parse(other))) << other;
  }
}

TEST(parser, floats_come_back_exactly) {
  for (const double value :
       {0.1, -0.0, 1e38, 1.17549435e-38, 1e-45, 3.0, -7.25, std::numeric_limits<double>::infinity(),
        -std::numeric_limits<double>::infinity(), std::nan(""), 16777217.0, 0.3333333333333333}) {
    for (const DType type : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
      const Expr e = constant_float(value, type);
      const auto text = fmt::format("Y[0] = select(X[0, 0] < f32({}), 1.0, 2.0)", print(e));
      const Result<Program> p = parse(text);
      ASSERT_TRUE(p.ok()) << text << p.status().message();
      const Expr back = p->phases[0].body->value->args[0]->args[1];
      EXPECT_TRUE(equal(back, cast(DType::kF32, e))) << text;
    }
  }
  for (uint64_t seed = 0; seed < 20000; ++seed) {
    const auto bits = static_cast<uint32_t>(hash_mix(seed));
    const Expr e = constant_float(static_cast<double>(std::bit_cast<float>(bits)));
    ASSERT_TRUE(equal(parse(fmt::format("Y[0] = {}", print(e)))->phases[0].body->value, e))
        << print(e);
  }
}

TEST(parser, integers_of_every_type_come_back) {
  for (const int64_t value : {int64_t{0}, int64_t{-5}, std::numeric_limits<int64_t>::min(),
                              std::numeric_limits<int64_t>::max()}) {
    for (const DType type : {DType::kI64, DType::kI32, DType::kU8, DType::kI8}) {
      const Expr e = constant_int(value, type);
      const Result<Program> p =
          parse(fmt::format("if i64({}) < i64(X[0, 0]) {{ Y[0] = 0.0 }}", print(e)));
      ASSERT_TRUE(p.ok()) << p.status().message();
      EXPECT_EQ(p->phases[0].body->condition->args[0]->int_value, e->int_value);
    }
  }
}

TEST(parser, names_that_collide_get_suffixes) {
  const VarPtr a = make_var("i"), b = make_var("i"), c = make_var("for"), d = make_var("1 x"),
               e = make_var("o.c");
  const Expr sum = variable(a) + variable(b) + variable(c) + variable(d) + variable(e);
  EXPECT_EQ(print(sum), "i + i_1 + for_ + v1_x + o.c");
}

TEST(parser, errors_say_where_and_what) {
  EXPECT_EQ(error_of("Y[0] = X[0, 0"), "line 6, column 3: expected ',' but found '}'");
  EXPECT_EQ(error_of("Y[0] = Z[0]"), "line 5, column 8: 'Z' is not declared");
  EXPECT_EQ(error_of("Y[0] = 1"), "line 5, column 8: expected a value of type f32, found i64");
  EXPECT_EQ(error_of("Y[0] = X[0]"), "line 5, column 9: X has 2 dimensions, found 1 indices");
  EXPECT_EQ(error_of("Y[0] = X[0, 0] + 1"), "line 5, column 16: 'add' of f32 and i64");
  EXPECT_EQ(error_of("Y[0] = exp(1)"), "line 5, column 8: 'exp' of i64, expected a float");
  EXPECT_EQ(error_of("for Y in 0..4 { }"), "line 5, column 5: 'Y' is declared already");
  EXPECT_EQ(error_of("for i in 0..99999999999999999999 { }"),
            "line 5, column 13: 99999999999999999999 is too large");
  EXPECT_EQ(error_of("for i in 4..2 { }"), "line 5, column 13: the range ends before it begins");
  EXPECT_EQ(error_of("if 1 { }"), "line 5, column 4: expected a value of type bool, found i64");
  EXPECT_EQ(error_of("Y[0] = 1.0 $"), "line 5, column 12: unexpected character '$'");
  EXPECT_EQ(error_of("Y[i] = 1.0"), "line 5, column 3: 'i' is not declared");
  EXPECT_EQ(error_of("for i in 0..4 { } Y[i] = 1.0"), "line 5, column 21: 'i' is not declared");
  EXPECT_EQ(error_of("if 1 < 2 < 3 { }"), "line 5, column 10: expected '{' but found '<'");
  EXPECT_EQ(error_of("alloc stack T: f12[4] { }"),
            "line 5, column 16: expected an element type but found 'f12'");
  EXPECT_EQ(parse_program("program p { phase {").status().message(),
            "line 1, column 20: expected a statement or '}' but found the end of the text");
  EXPECT_EQ(parse_program("program p { constant C: f32[3] = {1.0, 2.0} }").status().message(),
            "line 1, column 22: 'C' has 2 values, expected 3");
}

TEST(parser, known_zeros_of_inputs) {
  const auto input = [](std::string_view param) {
    return parse_program(fmt::format("program p {{\n  {}\n}}\n", param));
  };
  const std::string text = "program p {\n  input X: f32[4, 6] zeros {0, 1, 4, 2}\n}\n";
  const Result<Program> p = parse_program(text);
  ASSERT_TRUE(p.ok()) << p.status().message();
  EXPECT_EQ(p->params[0].zeros, (std::vector<int64_t>{0, 1, 4, 2}));
  EXPECT_EQ(print(*p), text);
  const std::string expected =
      "line 2, column 28: expected the zeros before and after each of 2 dimensions";
  for (const std::string_view zeros : {"{}", "{0, 1, 0}", "{0, 1, 5, 0}", "{3, 0, 2, 0}"})
    EXPECT_EQ(input(fmt::format("input X: f32[4, 6] zeros {}", zeros)).status().message(), expected)
        << zeros;
  EXPECT_FALSE(input("input X: f32[4, 6] zeros {0, -1, 0, 0}").ok());
  EXPECT_FALSE(input("output X: f32[4, 6] zeros {0, 0, 0, 0}").ok());
}

TEST(parser, deep_nesting_is_an_error_not_a_crash) {
  const std::string open(10'000, '('), close(10'000, ')');
  EXPECT_NE(error_of("Y[0] = " + open + "1.0" + close).find("nested too deeply"),
            std::string::npos);
  EXPECT_NE(error_of("Y[0] = " + std::string(10'000, '!') + "true").find("nested too deeply"),
            std::string::npos);
  std::string blocks, loads = "Y[0] = ", sum = "Y[0] = X[0, 0]";
  for (int i = 0; i < 10'000; ++i) {
    blocks += "if true { ";
    loads += "Y[";
    sum += " + X[0, 0]";
  }
  EXPECT_NE(error_of(blocks).find("nested too deeply"), std::string::npos);
  EXPECT_NE(error_of(loads).find("nested too deeply"), std::string::npos);
  EXPECT_NE(error_of(sum).find("nested too deeply"), std::string::npos);
}

TEST(parser, damaged_texts_never_crash) {
  constexpr std::string_view kPieces[] = {"(",  ")",  "{",   "}",    "[",   "]",   "-",
                                          "..", "//", "f32", "for ", "0",   "1e9", "nan",
                                          "\"", "\\", "#",   "\n",   ":i8", "peel"};
  int64_t parsed = 0, failed = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Rng rng(seed);
    std::string text = seed % 4 == 0 ? std::string(kExample) : print(random_program(seed % 40));
    for (int64_t n = rng.between(1, 4); n > 0; --n) {
      const auto at = static_cast<size_t>(rng.below(static_cast<int64_t>(text.size())));
      switch (rng.below(4)) {
        case 0: text[at] = static_cast<char>(rng.below(256)); break;
        case 1: text.erase(at, static_cast<size_t>(rng.between(1, 8))); break;
        case 2: text.insert(at, kPieces[rng.below(std::size(kPieces))]); break;
        default:
          text.insert(
              at,
              text.substr(static_cast<size_t>(rng.below(static_cast<int64_t>(text.size()))), 12));
      }
      if (text.empty()) text = " ";
    }
    const Result<Program> p = parse_program(text);
    (p.ok() ? parsed : failed) += 1;
    if (!p.ok()) {
      ASSERT_FALSE(p.status().message().empty());
      continue;
    }
    ASSERT_TRUE(equivalent(*p, *parse_program(print(*p)))) << "seed " << seed << "\n" << text;
    if (verify(*p).ok() && seed % 8 == 0) {
      std::vector<Tensor> args = random_arguments(*p, seed);
      (void)run(*p, args, {.max_operations = 100'000});
    }
  }
  EXPECT_GT(parsed, 40);
  EXPECT_GT(failed, 1000);
}

}  // namespace
}  // namespace hone::ir
