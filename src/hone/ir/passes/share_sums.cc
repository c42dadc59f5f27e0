#include "hone/ir/passes/share_sums.h"

#include <algorithm>
#include <map>

#include "hone/ir/linear.h"
#include "hone/ir/loads.h"
#include "hone/ir/passes/store_nest.h"
#include "hone/ir/visit.h"

namespace hone::ir {
namespace {

// Pairs of lines of a matrix, its rows or its columns, that are the same but for the sign of what
// is odd.
struct Mirror {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  std::vector<bool> odd;  // places along a line: columns where lines are rows, and the reverse
};

enum class Sign : uint8_t { kAny, kSame, kOther };

// Matches the elements of two lines by sign, and adds the result to the signs that other pairs
// need. Returns false if they do not match or if nothing would be gained.
template <typename At>
bool match(const At& at, int64_t first, int64_t second, std::vector<Sign>& signs) {
  int64_t same = 0, other = 0;
  for (size_t i = 0; i < signs.size(); ++i) {
    const float a = at(first, static_cast<int64_t>(i)), b = at(second, static_cast<int64_t>(i));
    if (a == 0 && b == 0) continue;
    if (a != b && a != -b) return false;
    const Sign sign = a == b ? Sign::kSame : Sign::kOther;
    if (signs[i] != Sign::kAny && signs[i] != sign) return false;
    signs[i] = sign;
    ++(sign == Sign::kSame ? same : other);
  }
  return same > 0 && other > 0 && same + other >= 3;
}

// at(line, place) is an element.
template <typename At>
Mirror mirror_of(int64_t lines, int64_t places, const At& at) {
  Mirror mirror;
  std::vector<Sign> signs(static_cast<size_t>(places), Sign::kAny);
  std::vector<bool> paired(static_cast<size_t>(lines));
  for (int64_t a = 0; a < lines; ++a) {
    for (int64_t b = a + 1; b < lines && !paired[static_cast<size_t>(a)]; ++b) {
      std::vector<Sign> joined = signs;
      if (paired[static_cast<size_t>(b)] || !match(at, a, b, joined)) continue;
      signs = std::move(joined);
      paired[static_cast<size_t>(a)] = paired[static_cast<size_t>(b)] = true;
      mirror.pairs.emplace_back(a, b);
    }
  }
  for (const Sign sign : signs) mirror.odd.push_back(sign == Sign::kOther);
  return mirror;
}

// A matrix with its signs in a column of their own.
struct Signed {
  BufferPtr matrix;
  Mirror mirror;
  bool by_rows = false;  // pairs of rows, else of columns
};

std::optional<Signed> with_signs(const Buffer& matrix) {
  if (matrix.shape.size() != 2 || !is_float(matrix.dtype)) return std::nullopt;
  const int64_t rows = matrix.shape[0], columns = matrix.shape[1];
  const auto at = [&](int64_t x, int64_t i) {
    return matrix.values[static_cast<size_t>(x * columns + i)];
  };
  Signed found{nullptr, mirror_of(rows, columns, at), true};
  if (found.mirror.pairs.empty())
    found = {nullptr, mirror_of(columns, rows, [&](int64_t i, int64_t x) { return at(x, i); }),
             false};
  if (found.mirror.pairs.empty()) return std::nullopt;
  std::vector<bool> negative = found.mirror.odd;  // rows
  if (found.by_rows) {
    negative.assign(static_cast<size_t>(rows), false);
    for (const auto& [first, second] : found.mirror.pairs)
      negative[static_cast<size_t>(second)] = true;
  }
  auto result = std::make_shared<Buffer>(matrix);
  result->shape[1] = columns + 1;
  result->values.clear();
  for (int64_t x = 0; x < rows; ++x) {
    const float sign = negative[static_cast<size_t>(x)] ? -1.0F : 1.0F;
    for (int64_t i = 0; i < columns; ++i) {
      const bool odd = found.by_rows && found.mirror.odd[static_cast<size_t>(i)];
      result->values.push_back(odd ? sign * at(x, i) : at(x, i));
    }
    result->values.push_back(sign);
  }
  found.matrix = std::move(result);
  return found;
}

// sum over i of matrix[x, i] * terms[i]
struct KnownSum {
  BufferPtr matrix;
  Expr row;  // a variable
  std::vector<Expr> terms;
};

// matrix[x, i] of a product, with the other factor; nothing if neither is such a load.
struct Product {
  Expr factor, term;
};
std::optional<Product> product_of(const Expr& e) {
  if (e->op != Op::kMul) return std::nullopt;
  for (const size_t side : {0, 1}) {
    const Expr& factor = e->args[side];
    if (factor->op == Op::kLoad && !factor->buffer->values.empty() && factor->args.size() == 2 &&
        factor->args[0]->op == Op::kVar && is_const_int(factor->args[1]))
      return Product{factor, e->args[1 - side]};
  }
  return std::nullopt;
}

bool add_terms(const Expr& e, KnownSum& sum) {
  if (e->op == Op::kAdd) return add_terms(e->args[0], sum) && add_terms(e->args[1], sum);
  const std::optional<Product> product = product_of(e);
  if (!product) return false;
  const ExprNode& factor = *product->factor;
  if (!sum.matrix) {
    sum.matrix = factor.buffer;
    sum.row = factor.args[0];
    sum.terms.resize(static_cast<size_t>(factor.buffer->shape[1]));
  }
  const int64_t column = factor.args[1]->int_value;
  if (factor.buffer != sum.matrix || !equal(factor.args[0], sum.row) || column < 0 ||
      column >= std::ssize(sum.terms) || sum.terms[static_cast<size_t>(column)] ||
      uses(product->term, sum.row->var.get()))
    return false;
  sum.terms[static_cast<size_t>(column)] = product->term;
  return true;
}

// Returns nothing if the value is something else, or has no term for some column.
std::optional<KnownSum> known_sum(const Expr& value) {
  KnownSum sum;
  if (!add_terms(value, sum) || std::count(sum.terms.begin(), sum.terms.end(), nullptr) > 0)
    return std::nullopt;
  return sum;
}

Expr plus(const Expr& sum, const Expr& term) { return sum ? sum + term : term; }

Expr shared_value(const KnownSum& sum, const Signed& with) {
  const int64_t columns = std::ssize(sum.terms);
  const auto factor = [&](int64_t i) { return load(with.matrix, {sum.row, constant(i)}); };
  const auto term = [&](int64_t i) { return sum.terms[static_cast<size_t>(i)]; };
  const Expr sign = factor(columns);
  if (with.by_rows) {
    Expr even, odd;
    for (int64_t i = 0; i < columns; ++i) {
      Expr& part = with.mirror.odd[static_cast<size_t>(i)] ? odd : even;
      part = plus(part, factor(i) * term(i));
    }
    return plus(even, sign * odd);
  }
  Expr value;
  const auto& pairs = with.mirror.pairs;
  for (int64_t i = 0; i < columns; ++i) {
    if (std::any_of(pairs.begin(), pairs.end(), [&](const auto& p) { return p.second == i; }))
      continue;
    const auto pair =
        std::find_if(pairs.begin(), pairs.end(), [&](const auto& p) { return p.first == i; });
    value = plus(value,
                 factor(i) * (pair == pairs.end() ? term(i) : term(i) + sign * term(pair->second)));
  }
  return value;
}

class Pass {
 public:
  void share(StoreNest& nest) {
    const std::optional<KnownSum> sum = known_sum(nest.store->value);
    if (!sum || reads(*to_stmt(nest), nest.store->buffer.get())) return;
    const auto loop = std::find_if(nest.around.begin(), nest.around.end(), [&](const Stmt& s) {
      return is_unrolled(s) && s->var == sum->row->var;
    });
    if (loop == nest.around.end() || !stores_apart(nest, *loop) || !may_move_inside(nest, loop))
      return;
    const auto [known, added] = matrices_.try_emplace(sum->matrix.get());
    if (added) known->second = with_signs(*sum->matrix);
    if (!known->second) return;
    nest.store =
        make_store(nest.store->buffer, nest.store->indices, shared_value(*sum, *known->second));
    // Inside of all other unrolled loops.
    std::rotate(loop, loop + 1, std::find_if_not(loop + 1, nest.around.end(), is_unrolled));
  }

  // Matrices with signs stand where nothing reads those without any more.
  void replace_params(Program& program) const {
    std::vector<Param> params, added;
    for (const Param& param : program.params) {
      const auto found = matrices_.find(param.buffer.get());
      const bool replaced =
          found != matrices_.end() && found->second && used(found->second->matrix, program);
      if (!replaced) {
        params.push_back(param);
      } else if (const Param signs = {found->second->matrix, param.role};
                 used(param.buffer, program)) {
        params.push_back(param);
        added.push_back(signs);
      } else {
        params.push_back(signs);
      }
    }
    params.insert(params.end(), added.begin(), added.end());  // the others keep their places
    program.params = std::move(params);
  }

 private:
  // Inside of the loop are unrolled ones that do not depend on it, then vectors: no guards, which
  // would keep rows apart.
  static bool may_move_inside(const StoreNest& nest, std::vector<Stmt>::const_iterator loop) {
    const Var* var = (*loop)->var.get();
    return std::all_of(loop + 1, nest.around.end(), [&](const Stmt& s) {
      return s->kind == StmtKind::kFor && !uses(s->min, var) && !uses(s->extent, var);
    });
  }

  static bool used(const BufferPtr& buffer, const Program& program) {
    return std::any_of(program.phases.begin(), program.phases.end(), [&](const Phase& phase) {
      return phase.body && reads(*phase.body, buffer.get());
    });
  }

  // With signs, if that gains; looked up only, never iterated.
  std::map<const Buffer*, std::optional<Signed>> matrices_;
};

}  // namespace

Program share_sums(Program program) {
  Pass pass;
  // Phases that run once, at compile time, gain too little to round differently.
  program = map_run_phases(std::move(program), [&](const Stmt& s) {
    return rewrite_nests(s, [&](StoreNest& nest) { pass.share(nest); });
  });
  pass.replace_params(program);
  return program;
}

}  // namespace hone::ir
