#include "hone/backend/gpu/print_matrix.h"

#include <fmt/format.h>

#include "hone/backend/gpu/matrix_layout.h"
#include "hone/ir/gpu/thread_nest.h"
#include "hone/ir/linear.h"
#include "hone/ir/simplify.h"

namespace hone::backend::gpu {
namespace {

using ir::Box;
using ir::Expr;
using ir::MatrixBox;
using ir::StmtNode;

bool in_fragment(const Box& box) { return box.buffer->scope == ir::Scope::kFragment; }

std::string_view type_word(DType type) {
  return type == DType::kF32 ? "tf32" : type == DType::kF16 ? "f16" : "bf16";
}

// The indices of an element of a box as a matrix.
std::vector<Expr> place(const Box& box, const Expr& row, const Expr& column) {
  const MatrixBox m = *ir::matrix_of(box);
  std::vector<Expr> indices = box.indices;
  Expr& r = indices[static_cast<size_t>(m.row)];
  r = r + row;
  Expr& c = indices[static_cast<size_t>(m.column)];
  c = c + column;
  return indices;
}

}  // namespace

MatrixPrinter::Count MatrixPrinter::open_loop(const char* name, int64_t extent) {
  const ir::Ranges::Mark mark = context_.ranges.mark();
  if (extent == 1) return {nullptr, ir::constant(0), mark};
  const ir::VarPtr var = ir::make_var(name);
  context_.ranges.bind(var, {0, extent - 1});
  const std::string& text = context_.names.declare(var.get(), name);
  out_.line("#pragma unroll");
  out_.open(fmt::format("for (int {} = 0; {} < {}; ++{})", text, text, extent, text));
  return {var, ir::variable(var), mark};
}

void MatrixPrinter::close_loop(const Count& count) {
  if (!count.var) return;
  out_.close();
  context_.names.release(count.var.get());
  context_.ranges.reset(count.mark);
}

void MatrixPrinter::print(const StmtNode& s) {
  for (const Box& box : s.boxes) {
    if (memory_.holds_values(*box.buffer))
      return context_.fail(error(Code::kUnsupported,
                                 "there is no code for a matrix instruction of known values, {}",
                                 box.buffer->name));
  }
  const ir::Ranges::Mark mark = context_.ranges.mark();
  const ir::VarPtr lane = ir::make_var("lane");
  context_.ranges.bind(lane, {0, ir::kWarpThreads - 1});
  lane_ = ir::variable(lane);
  out_.open("");
  out_.line(fmt::format("const int {} = thread % {};", context_.names.declare(lane.get(), "lane"),
                        ir::kWarpThreads));
  const DType type = s.boxes[2].buffer->dtype;
  const Count k = open_loop("k", ir::matrix_of(s.boxes[2])->rows / matrix_depth(type));
  depth_step(s, k.value);
  close_loop(k);
  out_.close();
  context_.names.release(lane.get());
  context_.ranges.reset(mark);
}

// One step along what is summed up: all tiles of A are loaded, then each tile of B in turn.
void MatrixPrinter::depth_step(const StmtNode& s, const Expr& k) {
  const Box& result = s.boxes[0];
  const MatrixBox d = *ir::matrix_of(result);
  const int64_t rows = d.rows / (kMatrixRows / kTileRows), columns = d.columns / kOwnColumns;
  const DType type = s.boxes[1].buffer->dtype;
  const auto a_var = ir::make_var("a"), b_var = ir::make_var("b");
  const std::string a = context_.names.declare(a_var.get(), "a");
  out_.line(rows == 1 ? fmt::format("uint {}[4];", a) : fmt::format("uint {}[{}][4];", a, rows));
  const auto a_of = [&](const Expr& m) {
    return rows == 1 ? a : fmt::format("{}[{}]", a, exprs_.print(m));
  };
  const Count load = open_loop("m", rows);
  load_a(s.boxes[1], a_of(load.value), load.value, k);
  close_loop(load);

  const Box& right = s.boxes[2];
  const bool pair =
      columns % 2 == 0 &&
      !aligned_address(right, k * matrix_depth(type), ir::constant(0), ir::kWarpThreads).empty();
  const Count n = open_loop("n", pair ? columns / 2 : columns);
  const std::string b = context_.names.declare(b_var.get(), "b");
  out_.line(fmt::format("uint {}[{}];", b, pair ? 4 : 2));
  load_b(s, b, k, n.value * (pair ? 2 : 1), pair);
  const Count m = open_loop("m", rows);
  for (int i = 0; i < (pair ? 2 : 1); ++i) {
    const Expr tile = n.value * (pair ? 2 : 1) + i;
    std::string sums;
    for (int e = 0; e < 4; ++e)
      sums += element(result, m.value * 2 + e / 2, tile * 2 + e % 2) + ", ";
    const std::string_view name = context_.functions.use(fmt::format("matrix_{}", type_word(type)));
    out_.line(fmt::format("{}({}{}, {}[{}], {}[{}]);", name, sums, a_of(m.value), b, 2 * i, b,
                          2 * i + 1));
  }
  close_loop(m);
  close_loop(n);
  context_.names.release(a_var.get());
  context_.names.release(b_var.get());
}

std::string MatrixPrinter::element(const Box& box, const Expr& row, const Expr& column) {
  std::vector<Expr> indices = place(box, row, column);
  for (Expr& i : indices) i = ir::simplify(i, context_.ranges);
  return exprs_.element(box.buffer, indices);
}

std::string MatrixPrinter::aligned_address(const Box& box, const Expr& row, const Expr& column,
                                           int addresses) {
  constexpr int64_t kElements = 8;  // of 16 bits, which ldmatrix loads from an address
  const MatrixBox m = *ir::matrix_of(box);
  const bool by_column = box.transposed;
  const auto next = static_cast<size_t>(by_column ? m.row : m.column);
  if (box.buffer->scope != ir::Scope::kShared || dtype_bytes(box.buffer->dtype) != 2 ||
      next + 1 != box.buffer->shape.size())
    return "";
  const Expr lane = addresses < ir::kWarpThreads ? ir::floormod(lane_, addresses) : lane_;
  const MatrixPlace at = address_place(by_column, lane);
  const std::vector<Expr> indices = place(box, row + at.row, column + at.column);
  const ir::Linear flat = ir::linearize(memory_.flat_index(*box.buffer, indices));
  if (flat.constant % kElements != 0) return "";
  for (const auto& [term, coefficient] : flat.terms) {
    if (coefficient % kElements != 0) return "";
  }
  return "&" + element(box, row + at.row, column + at.column);
}

void MatrixPrinter::load_elements(const std::string& to, DType type, int registers,
                                  const auto& element) {
  for (int r = 0; r < registers; ++r) {
    const std::string value =
        type == DType::kF32
            ? fmt::format("{}({})", context_.functions.use("tf32_of_float"), element(r))
            : fmt::format("{}({}, {})", context_.functions.use("two_halves"), element(2 * r),
                          element(2 * r + 1));
    out_.line(fmt::format("{}[{}] = {};", to, r, value));
  }
}

void MatrixPrinter::load_a(const Box& box, const std::string& to, const Expr& m, const Expr& k) {
  const DType type = box.buffer->dtype;
  const int64_t depth = matrix_depth(type);
  if (in_fragment(box)) {
    return load_elements(to, type, 4, [&](int number) {
      const OwnPlace own = a_of_fragment(type, number);
      return element(box, m * (kMatrixRows / kTileRows) + own.row,
                     k * (depth / kTileColumns * kOwnColumns) + own.column);
    });
  }
  const Expr row = m * kMatrixRows, column = k * depth;
  if (const std::string address = aligned_address(box, row, column, ir::kWarpThreads);
      !address.empty()) {
    const std::string_view name =
        context_.functions.use(box.transposed ? "load_matrix_4_transposed" : "load_matrix_4");
    return out_.line(fmt::format("{}({}, {});", name, to, address));
  }
  load_elements(to, type, 4, [&](int number) {
    const MatrixPlace at = a_place(type, number, lane_);
    return element(box, row + at.row, column + at.column);
  });
}

void MatrixPrinter::load_b(const StmtNode& s, const std::string& to, const Expr& k, const Expr& n,
                           bool pair) {
  const Box& box = s.boxes[2];
  const DType type = box.buffer->dtype;
  const Expr row = k * matrix_depth(type), column = n * kMatrixColumns;
  const int addresses = pair ? ir::kWarpThreads : ir::kWarpThreads / 2;
  if (const std::string address = aligned_address(box, row, column, addresses); !address.empty()) {
    const std::string name =
        fmt::format("load_matrix_{}{}", pair ? 4 : 2, box.transposed ? "" : "_transposed");
    return out_.line(fmt::format("{}({}, {});", context_.functions.use(name), to, address));
  }
  load_elements(to, type, 2, [&](int number) {
    const MatrixPlace at =
        in_fragment(s.boxes[1]) ? b_of_fragment(type, number, lane_) : b_place(type, number, lane_);
    return element(box, row + at.row, column + at.column);
  });
}

}  // namespace hone::backend::gpu
