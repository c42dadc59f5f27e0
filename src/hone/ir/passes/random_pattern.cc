#include "hone/ir/passes/random_pattern.h"

#include <fmt/format.h>

#include "hone/ir/parser.h"
#include "hone/ir/random_program.h"

namespace hone::ir {
namespace {

using Texts = std::vector<std::string>;

Program parsed(std::string_view params, const Texts& phases) {
  std::string text = fmt::format("program pattern {{\n{}\n", params);
  for (const std::string& phase : phases) text += "  phase {\n" + phase + "\n  }\n";
  Result<Program> program = parse_program(text + "}\n");
  HONE_ASSERT(program.ok(), "the text of a pattern is no program");
  return *std::move(program);
}

// The body inside of loops such as "for i in 0..4", the first one outermost.
std::string nested(const Texts& loops, std::string body) {
  for (size_t i = loops.size(); i-- > 0;) body = loops[i] + " { " + body + " }";
  return body;
}

std::string loop_kind(Rng& rng, double unrolled) {
  return rng.chance(unrolled) ? "unrolled" : "for";
}

// The stages of a softmax over rows: fuse_loops, jam_loops.
Program rows(Rng& rng) {
  const int64_t rows = rng.between(2, 6), columns = rng.between(3, 40);
  const std::string kind = loop_kind(rng, 0.5);
  const std::string other_row = rng.chance(0.1) ? fmt::format("{} - i", rows - 1) : "i";
  const Texts stages = {
      "a[i] = -inf vectorized n in 0..{} {{ a[i] = max(a[i], x[i, n]) }}",
      "vectorized n in 0..{} {{ w[i, n] = exp(x[i, n] - a[{}]) }}",
      "b[i] = 0.0 vectorized n in 0..{} {{ b[i] = b[i] + w[{}, n] }}",
      "b[i] = 0.0 vectorized n in 0..{} {{ b[i] = b[i] + exp(x[i, n]) }}",
      "vectorized n in 0..{} {{ w[i, n] = w[i, n] * (1.0 / b[{}]) }}",
  };
  std::string body = "a[0] = 0.0 b[0] = 1.0\n";
  for (const std::string& stage : stages) {
    if (rng.chance(0.3)) continue;
    const int64_t extent = rng.chance(0.9) ? rows : rows - 1;
    body += fmt::format("{} i in 0..{} {{ {} }}\n", rng.chance(0.9) ? kind : loop_kind(rng, 0.5),
                        extent, fmt::format(fmt::runtime(stage), columns, other_row));
    if (rng.chance(0.1)) body += "w[0, 0] = 0.5\n";
  }
  return parsed(fmt::format("input x: f32[{0}, {1}] output w: f32[{0}, {1}] output a: f32[{0}] "
                            "output b: f32[{0}]",
                            rows, columns),
                {nested({fmt::format("for again in 0..{}", rng.between(1, 2))}, body)});
}

// Functions of a vector that some iterations share: hoist_functions.
Program shared_functions(Rng& rng) {
  const int64_t rows = rng.between(2, 6), columns = rng.between(4, 24);
  const Texts functions = {"exp(c[n])",    "(1.0 / c[n])", "sqrt(c[n] * c[n] + 1.0)", "tanh(c[n])",
                           "exp(x[r, n])", "exp(d[r])",    "(x[r, n] / c[n])",        "c[n]"};
  std::string value = "x[r, n]";
  for (int64_t i = rng.between(1, 2); i > 0; --i)
    value += (rng.chance(0.5) ? " * " : " + ") + rng.choice(functions);
  std::string store = fmt::format("y[r, n] = {}", value);
  if (rng.chance(0.3)) store = fmt::format("if n < {} {{ {} }}", rng.between(1, columns), store);
  return parsed(
      fmt::format("input x: f32[{0}, {1}] input c: f32[{1}] input d: f32[{0}] "
                  "output y: f32[{0}, {1}]",
                  rows, columns),
      {nested({fmt::format("for r in 0..{}", rows), fmt::format("vectorized n in 0..{}", columns)},
              store)});
}

// Rows that lie at places in data, or almost: hoist_places.
Program placed_rows(Rng& rng) {
  const int64_t table = rng.between(2, 6), rows = rng.between(1, 5), columns = rng.between(1, 150);
  const Texts types = {"f32", "i64", "f64"};
  const std::string type = rng.choice(types);
  const std::string place =
      fmt::format("min(max(ids[{}], 0), {})", rng.choice(Texts{"r", "0"}), table - 1);
  const Texts values = {"table[{}, c]", "table[{}, c] + x[r, c]", "table[{}, 0] + x[r, c]",
                        "x[r, c] + x[0, c] * table[{}, c]",
                        "table[min({0}, c), c]"};  // a near miss
  const std::string store =
      fmt::format("y[r, c] = {}", fmt::format(fmt::runtime(rng.choice(values)), place));
  return parsed(
      fmt::format("input ids: i64[{0}] input table: {1}[{2}, {3}] input x: {1}[{0}, {3}] "
                  "output y: {1}[{0}, {3}]",
                  rows, type, table, columns),
      {nested({fmt::format("for r in 0..{}", rows), fmt::format("for c in 0..{}", columns)},
              store)});
}

// Rows of a table at places that are known before them: prefetch_rows.
Program table_rows(Rng& rng) {
  const int64_t rows = rng.between(2, 5), columns = rng.between(1, 140);
  const Texts types = {"f32", "i64", "f64"};
  const Texts values = {"table[place[], c]", "x[r, c] + table[place[], c]",
                        "table[place[], c] * table[min(place[] + 1, 3), c]",
                        "x[r, c] + table[place[], 0]"};  // a near miss
  const std::string row =
      fmt::format("vectorized c in 0..{} {{ y[r, c] = {} }}", columns, rng.choice(values));
  return parsed(fmt::format("input ids: i64[{0}] input table: {1}[4, {2}] input x: {1}[{0}, {2}] "
                            "output y: {1}[{0}, {2}]",
                            rows, rng.choice(types), columns),
                {nested({fmt::format("{} r in 0..{}", rng.chance(0.5) ? "parallel" : "for", rows),
                         "alloc stack place: i64[]"},
                        "place[] = min(max(ids[r], 0), 3)\n" + row)});
}

// A product in tiles of registers: prefetch_blocks.
Program product(Rng& rng) {
  const int64_t tiles = rng.between(2, 5), rows = rng.between(2, 5), panels = rng.between(2, 4),
                depth = rng.between(4, 12), lanes = rng.chance(0.5) ? 8 : 16;
  Texts outer = {fmt::format("m in 0..{}", tiles), fmt::format("n in 0..{}", panels)};
  if (rng.chance(0.5)) std::swap(outer[0], outer[1]);
  const std::string tile =
      nested({(rng.chance(0.5) ? "parallel " : "for ") + outer[0], "for " + outer[1],
              fmt::format("for k in 0..{}", depth), fmt::format("unrolled i in 0..{}", rows),
              fmt::format("vectorized l in 0..{}", lanes)},
             fmt::format("out[m * {0} + i, n * {1} + l] = out[m * {0} + i, n * {1} + l] + "
                         "a[m * {0} + i, k] * w[n, k, l]",
                         rows, lanes));
  const std::string zero = nested(
      {fmt::format("for i in 0..{}", tiles * rows), fmt::format("for l in 0..{}", panels * lanes)},
      "out[i, l] = 0.0");
  return parsed(
      fmt::format("input a: f32[{}, {}] input w: f32[{}, {}, {}] output out: f32[{}, {}]",
                  tiles * rows, depth, panels, depth, lanes, tiles * rows, panels * lanes),
      {zero, tile});
}

// Sums over a window of rows, then a nest that reads them several times: prefetch_next.
Program blocks(Rng& rng) {
  const int64_t blocks = rng.between(2, 4), rows = rng.between(2, 4), columns = rng.between(24, 80),
                taps = rng.between(1, 3), depth = rng.between(1, 3);
  const std::string again =
      rng.chance(0.2) ? fmt::format(" + data[block * {} + r, c]", rows) : "";  // near misses
  const std::string windows = nested(
      {fmt::format("for row in 0..{}", rows), fmt::format("for column in 0..{}", columns)},
      fmt::format("between[row, column] = 0.0 unrolled tap in 0..{} {{ between[row, column] = "
                  "between[row, column] + data[block * {} + row + tap, column] }}",
                  taps, rows));
  const std::string sums =
      nested({fmt::format("for r in 0..{}", rows), fmt::format("for k in 0..{}", depth),
              fmt::format("vectorized c in 0..{}", columns)},
             fmt::format("out[block * {0} + r, c] = out[block * {0} + r, c] + between[r, c]{1}",
                         rows, again));
  const std::string zero =
      nested({fmt::format("for r in 0..{}", blocks * rows), fmt::format("for c in 0..{}", columns)},
             "out[r, c] = 0.0");
  return parsed(
      fmt::format("input data: f32[{}, {}] output out: f32[{}, {}]", blocks * rows + taps - 1,
                  columns, blocks * rows, columns),
      {zero, nested({fmt::format("{} block in 0..{}", rng.chance(0.5) ? "parallel" : "for", blocks),
                     fmt::format("alloc thread between: f32[{}, {}]", rows, columns)},
                    windows + "\n" + sums)});
}

// A product with a matrix whose lines are alike but for signs: share_sums.
Program transform(Rng& rng) {
  const int64_t rows = rng.between(3, 6), columns = rng.between(3, 6), points = rng.between(1, 3);
  const bool by_rows = rng.chance(0.5);
  const int64_t lines = by_rows ? rows : columns, places = by_rows ? columns : rows;
  const std::vector<double> choices = {0, 1, -1, 2, -2, 0.5, 4};
  std::vector<std::vector<double>> matrix;
  for (int64_t line = 0; line < lines; ++line) {
    matrix.emplace_back();
    for (int64_t place = 0; place < places; ++place) {
      const bool mirrors = line % 2 == 1 && !rng.chance(0.02);
      const double before = mirrors ? matrix[line - 1][place] : 0;
      matrix.back().push_back(!mirrors ? rng.choice(choices) : place % 2 == 0 ? before : -before);
    }
  }
  Texts values, terms;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column)
      values.push_back(fmt::format("{:.1f}", by_rows ? matrix[row][column] : matrix[column][row]));
  }
  for (int64_t column = 0; column < columns; ++column)
    terms.push_back(fmt::format("B[x, {0}] * d[{0}, r, v]", column));
  Texts loops = {fmt::format("{} x in 0..{}", loop_kind(rng, 0.9), rows),
                 fmt::format("{} r in 0..{}", loop_kind(rng, 0.7), points)};
  if (rng.chance(0.3)) std::swap(loops[0], loops[1]);
  loops.emplace_back("vectorized v in 0..8");
  return parsed(fmt::format("constant B: f32[{0}, {1}] = {{{2}}} input d: f32[{1}, {3}, 8] "
                            "output y: f32[{0}, {3}, 8]",
                            rows, columns, fmt::join(values, ", "), points),
                {nested(loops, fmt::format("y[x, r, v] = {}", fmt::join(terms, " + ")))});
}

// An operator of sums and its neutral element.
struct Reduction {
  const char *form, *neutral;
};
const std::vector<Reduction>& reductions() {
  static const std::vector<Reduction> all = {
      {"{} + {}", "0.0"}, {"max({}, {})", "-inf"}, {"min({}, {})", "inf"}};
  return all;
}

// Points whose windows overlap: share_windows.
Program windows(Rng& rng) {
  const int64_t taps = rng.between(2, 4), height = rng.between(1, 3), width = rng.between(3, 6),
                stride = rng.chance(0.8) ? 1 : rng.between(2, 3);
  Texts loops = {fmt::format("{} p in 0..{}", loop_kind(rng, 0.9), taps),
                 fmt::format("{} q in 0..{}", loop_kind(rng, 0.9), taps),
                 fmt::format("{} h in 0..{}", loop_kind(rng, 0.9), height),
                 fmt::format("{} w in 0..{}", loop_kind(rng, 0.9), width)};
  rng.shuffle(loops);
  if (rng.chance(0.2)) loops.push_back(fmt::format("if h + p < {}", rng.between(1, taps)));
  loops.emplace_back("vectorized v in 0..4");
  // An extreme has the old value behind the term, so that it passes over NaN.
  const Reduction reduction = rng.choice(reductions());
  Texts operands = {"a[h, w, v]", fmt::format("x[p + h * {0}, q + w * {0}, v]", stride)};
  if (reduction.neutral != std::string_view("0.0")) std::swap(operands[0], operands[1]);
  const std::string update = fmt::format(fmt::runtime(reduction.form), operands[0], operands[1]);
  const std::string zero = nested({fmt::format("for h in 0..{}", height),
                                   fmt::format("for w in 0..{}", width), "for v in 0..4"},
                                  "a[h, w, v] = 0.0");
  return parsed(
      fmt::format("input x: f32[{}, {}, 4] output a: f32[{}, {}, 4]", (height - 1) * stride + taps,
                  (width - 1) * stride + taps, height, width),
      {zero, nested(loops, "a[h, w, v] = " + update)});
}

// A window over padded rows, summed up in registers: skip_neutral.
Program padded(Rng& rng) {
  const int64_t rows = rng.between(2, 5), taps = rng.between(2, 3), vectors = rng.between(1, 3);
  const Reduction reduction = rng.choice(reductions());
  const char* const neutral = rng.chance(0.8) ? reduction.neutral : "0.25";
  const std::string_view lanes = rng.chance(0.1) ? " && l < 5" : "";  // near misses
  const std::string chosen = fmt::format(
      "select(1 <= row + k && row + k < {}{}, x[row + k - 1, c, l], {})", rows + 1, lanes, neutral);
  const std::string vector = fmt::format("unrolled c in 0..{} {{ vectorized l in 0..8", vectors);
  Texts operands = {"a[c, l]", chosen};
  if (rng.chance(0.5)) std::swap(operands[0], operands[1]);
  const std::string update = fmt::format(fmt::runtime(reduction.form), operands[0], operands[1]);
  const std::string body = fmt::format(
      "{0} {{ a[c, l] = 0.5 }} }} for k in 0..{1} {{ {0} {{ a[c, l] = {2} }} }} }} "
      "{0} {{ y[row, c, l] = a[c, l] }} }}",
      vector, taps, update);
  return parsed(fmt::format("input x: f32[{0}, {1}, 8] output y: f32[{0}, {1}, 8]", rows, vectors),
                {nested({fmt::format("for row in 0..{}", rows),
                         fmt::format("alloc register a: f32[{}, 8]", vectors)},
                        body)});
}

constexpr RandomPattern kPatterns[] = {
    {"rows", rows},
    {"shared_functions", shared_functions},
    {"placed_rows", placed_rows},
    {"table_rows", table_rows},
    {"product", product},
    {"blocks", blocks},
    {"transform", transform},
    {"windows", windows},
    {"padded", padded},
};

}  // namespace

std::span<const RandomPattern> random_patterns() { return kPatterns; }

Program random_case(uint64_t seed) {
  Rng rng(seed);
  // Only f32: casts to integers turn a difference in the last bit into one in the first.
  if (rng.chance(0.5)) return random_program(rng.next(), {.only_f32 = true});
  const size_t chosen = rng.below(std::size(kPatterns));
  return kPatterns[chosen].make(rng);
}

}  // namespace hone::ir
