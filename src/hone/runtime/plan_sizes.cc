#include "hone/runtime/plan_sizes.h"

#include "hone/runtime/plan_ranges.h"

namespace hone::runtime {
namespace {

constexpr uint32_t kMostFactors = 64;  // of a term

const uint32_t* factors_of(const PlanHeader& plan, const PlanTerm& term) {
  return plan_table<uint32_t>(plan, plan.factors) + term.first_factor;
}
const PlanTerm* terms_of(const PlanHeader& plan, const PlanForm& form) {
  return plan_table<PlanTerm>(plan, plan.terms) + form.first_term;
}
const PlanSymbol& symbol_at(const PlanHeader& plan, uint32_t i) {
  return plan_table<PlanSymbol>(plan, plan.symbols)[i];
}
const PlanForm& form_at(const PlanHeader& plan, int32_t i) {
  return plan_table<PlanForm>(plan, plan.forms)[i];
}

int64_t floor_div(int64_t value, int64_t divisor) {
  const int64_t quotient = value / divisor;
  return value % divisor < 0 ? quotient - 1 : quotient;
}

// Multiplies by a number of 0 to kMostBytes, or by 1 for 0, so that no product of some of the
// numbers overflows either. Returns false if the product exceeds kMostBytes.
bool multiply(int64_t& product, int64_t factor) {
  return factor == 0 ||
         (!__builtin_mul_overflow(product, factor, &product) && product <= kMostBytes);
}

bool symbols_fit(const PlanHeader& plan) {
  if (plan.num_symbols > static_cast<uint32_t>(kMaxSymbols) ||
      plan.num_forms > static_cast<uint32_t>(kMaxForms))
    return false;
  for (uint32_t i = 0; i < plan.num_symbols; ++i) {
    const PlanSymbol& symbol = symbol_at(plan, i);
    if (!string_fits(plan, symbol.name) || symbol.min < 0 || symbol.max < symbol.min ||
        symbol.max > kMostBytes)
      return false;
  }
  if (plan.num_symbols == 0) return plan.sizes == -1 && plan.num_forms == 0;
  return plan.device == DeviceKind::kNone && plan.sizes % 8 == 0 &&
         range_fits(plan.arena_bytes, plan.sizes, kMaxForms * 8);
}

// Returns whether a form follows from symbols without other forms.
bool follows_from_symbols(const PlanHeader& plan, const PlanForm& form) {
  for (uint32_t i = 0; i < form.num_terms; ++i) {
    const PlanTerm& term = terms_of(plan, form)[i];
    for (uint32_t k = 0; k < term.num_factors; ++k) {
      if (factors_of(plan, term)[k] >= plan.num_symbols) return false;
    }
  }
  return true;
}

// The values of all symbols at the ends of their ranges.
struct Ends {
  int64_t least[kMaxSymbols];
  int64_t most[kMaxSymbols];
};

Ends ends_of(const PlanHeader& plan) {
  Ends ends;
  for (uint32_t i = 0; i < plan.num_symbols; ++i) {
    ends.least[i] = symbol_at(plan, i).min;
    ends.most[i] = symbol_at(plan, i).max;
  }
  return ends;
}

// Multiplies by the largest value of a factor of a form. Forms before that one were checked.
bool multiply_by_factor(const PlanHeader& plan, uint32_t factor, uint32_t form, const Ends& ends,
                        int64_t& product) {
  if (factor < plan.num_symbols) return multiply(product, ends.most[factor]);
  const uint32_t before = factor - plan.num_symbols;
  if (before >= form) return false;
  const PlanForm& other = form_at(plan, static_cast<int32_t>(before));
  if (!follows_from_symbols(plan, other) || form_value(plan, other, ends.least) < 0) return false;
  const int64_t most = form_value(plan, other, ends.most);
  return most <= kMostBytes && multiply(product, most);
}

bool term_fits(const PlanHeader& plan, const PlanTerm& term, uint32_t form, const Ends& ends) {
  if (term.factor < 1 || term.factor > kMostBytes || term.num_factors > kMostFactors ||
      !entries_fit(term.first_factor, term.num_factors, plan.num_factors))
    return false;
  int64_t most = term.factor;
  for (uint32_t i = 0; i < term.num_factors; ++i) {
    if (!multiply_by_factor(plan, factors_of(plan, term)[i], form, ends, most)) return false;
  }
  return true;
}

// A bound is there, within what extents may be, or it is the value that says there is none.
bool bound_fits(int64_t bound, int64_t none) {
  return bound == none || (bound >= -kMostBytes && bound <= kMostBytes);
}

bool form_fits(const PlanHeader& plan, uint32_t index, const Ends& ends) {
  const PlanForm& form = form_at(plan, static_cast<int32_t>(index));
  if (form.divisor < 1 || form.divisor > kMostDivisor || form.offset < -kMostBytes ||
      form.offset > kMostBytes || form.least > form.most || !bound_fits(form.least, INT64_MIN) ||
      !bound_fits(form.most, INT64_MAX) || form.num_terms > static_cast<uint32_t>(kMaxForms) ||
      !entries_fit(form.first_term, form.num_terms, plan.num_terms))
    return false;
  for (uint32_t i = 0; i < form.num_terms; ++i) {
    if (!term_fits(plan, terms_of(plan, form)[i], index, ends)) return false;
  }
  return true;
}

bool part_fits(const PlanHeader& plan, const PlanPart& part, const Ends& ends) {
  if (part.most < 0 || part.most > kMostBytes || part.form < -1) return false;
  if (part.form == -1) return true;
  if (static_cast<uint32_t>(part.form) >= plan.num_forms) return false;
  const PlanForm& form = form_at(plan, part.form);
  return form_value(plan, form, ends.least) >= 0 && form_value(plan, form, ends.most) == part.most;
}

bool dims_fit(const PlanHeader& plan, const PlanTensor& tensor) {
  if (tensor.dims == 0) return true;
  const auto rank = static_cast<uint32_t>(tensor.rank);
  if (!varies(plan) || tensor.actual_shape != -1 ||
      !table_fits(plan.total_bytes, tensor.dims, rank, sizeof(PlanDim)))
    return false;
  uint32_t parts = 0;
  int64_t elements = 1;
  int64_t bound = 1;
  for (int d = 0; d < tensor.rank; ++d) {
    const PlanDim& dim = plan_dim(plan, tensor, d);
    if (!string_fits(plan, dim.text) || dim.num_parts < 1 ||
        !entries_fit(dim.first_part, dim.num_parts, plan.num_parts) ||
        dim.num_parts > static_cast<uint32_t>(kMaxParts))
      return false;
    parts += dim.num_parts;
    int64_t extent = 1;
    for (uint32_t i = 0; i < dim.num_parts; ++i) {
      const int64_t most = parts_of(plan, dim)[i].most;
      if (!multiply(bound, most)) return false;
      extent *= most;
    }
    if (extent != plan_table<int64_t>(plan, tensor.shape)[d]) return false;
    elements *= extent;
  }
  if (parts > static_cast<uint32_t>(kMaxParts)) return false;
  return elements == 0 ? tensor.bytes == 0 : tensor.bytes > 0 && tensor.bytes % elements == 0;
}

bool limit_fits(const PlanHeader& plan, const PlanStep& step, const int64_t* most) {
  const TileLimit& limit = step.limit;
  if (limit.form == -1) return true;
  if (limit.form < -1 || static_cast<uint32_t>(limit.form) >= plan.num_forms || limit.divisor < 1 ||
      limit.divisor > kMostBytes || limit.multiplier < 0)
    return false;
  const int64_t size = form_value(plan, form_at(plan, limit.form), most);
  int64_t tiles = floor_div(size - 1, limit.divisor) + 1;
  return !__builtin_mul_overflow(tiles, limit.multiplier, &tiles);
}

bool sizes_fit(const PlanHeader& plan, const PlanStep& step) {
  const SizeInterval& when = step.when;
  if (step.run.form < -1 ||
      (step.run.form >= 0 && static_cast<uint32_t>(step.run.form) >= plan.num_forms))
    return false;
  if (when.form == -1) return true;
  return when.form >= 0 && static_cast<uint32_t>(when.form) < plan.num_forms &&
         when.from <= when.most;
}

bool is_bounded(const PlanForm& form) { return form.least != INT64_MIN || form.most != INT64_MAX; }

// Returns whether the dimensions of inputs, from which symbols are found, have forms of symbols
// alone, and without bounds.
bool inputs_fit(const PlanHeader& plan) {
  for (uint32_t i = 0; i < plan.num_inputs; ++i) {
    const PlanTensor& input = plan_input(plan, static_cast<int>(i));
    for (int d = 0; input.dims != 0 && d < input.rank; ++d) {
      const PlanDim& dim = plan_dim(plan, input, d);
      for (uint32_t k = 0; k < dim.num_parts; ++k) {
        const int32_t index = parts_of(plan, dim)[k].form;
        if (index < 0) continue;
        const PlanForm& form = form_at(plan, index);
        if (!follows_from_symbols(plan, form) || is_bounded(form)) return false;
      }
    }
  }
  return true;
}

// Whether the shapes of the inputs tell every symbol, one after the other.
bool symbols_follow(const PlanHeader& plan) {
  int64_t known[kMaxSymbols];
  for (uint32_t i = 0; i < plan.num_symbols; ++i) known[i] = -1;
  uint32_t left = plan.num_symbols;
  for (bool found = true; found && left > 0;) {
    found = false;
    for (uint32_t i = 0; i < plan.num_inputs; ++i) {
      const PlanTensor& input = plan_input(plan, static_cast<int>(i));
      for (int d = 0; input.dims != 0 && d < input.rank; ++d) {
        const Unknown unknown = find_unknown(plan, plan_dim(plan, input, d), known);
        if (unknown.count != 1) continue;
        known[unknown.symbol] = symbol_at(plan, unknown.symbol).max;
        found = true;
        --left;
      }
    }
  }
  return left == 0;
}

}  // namespace

const char* sizes_check(const PlanHeader& plan) {
  if (!symbols_fit(plan)) return "the sizes of the plan are out of range";
  const Ends ends = ends_of(plan);
  for (uint32_t i = 0; i < plan.num_forms; ++i) {
    if (!form_fits(plan, i, ends)) return "the sizes of the plan are out of range";
  }
  for (uint32_t i = 0; i < plan.num_parts; ++i) {
    if (!part_fits(plan, plan_table<PlanPart>(plan, plan.parts)[i], ends))
      return "a dimension of the plan is out of range";
  }
  for (int i = 0; i < num_tensors(plan); ++i) {
    if (!dims_fit(plan, tensor_at(plan, i))) return "a dimension of the plan is out of range";
  }
  for (uint32_t i = 0; i < plan.num_steps; ++i) {
    const PlanStep& step = plan_table<PlanStep>(plan, plan.steps)[i];
    if (!limit_fits(plan, step, ends.most))
      return "the tiles of a step of the plan are out of range";
    if (!sizes_fit(plan, step)) return "the sizes of a step of the plan are out of range";
  }
  if (!inputs_fit(plan)) return "a dimension of the plan is out of range";
  if (!symbols_follow(plan)) return "a size of the plan follows from no input";
  return nullptr;
}

int64_t form_value(const PlanHeader& plan, const PlanForm& form, const int64_t* symbols) {
  int64_t sum = form.offset;
  for (uint32_t i = 0; i < form.num_terms; ++i) {
    const PlanTerm& term = terms_of(plan, form)[i];
    int64_t product = term.factor;
    for (uint32_t k = 0; k < term.num_factors; ++k) {
      const uint32_t factor = factors_of(plan, term)[k];
      product *=
          factor < plan.num_symbols
              ? symbols[factor]
              : form_value(plan, form_at(plan, static_cast<int32_t>(factor - plan.num_symbols)),
                           symbols);
    }
    sum += product;
  }
  const int64_t value = floor_div(sum, form.divisor);
  if (value < form.least) return form.least;
  return value > form.most ? form.most : value;
}

int64_t dim_value(const PlanHeader& plan, const PlanDim& dim, const int64_t* forms) {
  int64_t extent = 1;
  for (uint32_t i = 0; i < dim.num_parts; ++i) {
    const PlanPart& part = parts_of(plan, dim)[i];
    extent *= part.form < 0 ? part.most : forms[part.form];
  }
  return extent;
}

int64_t tiles_of(const PlanStep& step, const int64_t* forms) {
  if (step.when.form >= 0) {
    const int64_t size = forms[step.when.form];
    if (size < step.when.from || size > step.when.most) return 0;
  }
  if (step.run.form >= 0 && forms[step.run.form] < step.run.least) return 0;
  if (step.limit.form < 0) return step.num_tiles;
  const int64_t size = forms[step.limit.form];
  if (size <= 0) return 0;
  const int64_t tiles = ((size - 1) / step.limit.divisor + 1) * step.limit.multiplier;
  return tiles < step.num_tiles ? tiles : step.num_tiles;
}

Unknown find_unknown(const PlanHeader& plan, const PlanDim& dim, const int64_t* symbols) {
  Unknown unknown;
  for (uint32_t i = 0; i < dim.num_parts; ++i) {
    const PlanPart& part = parts_of(plan, dim)[i];
    if (part.form < 0) continue;
    const PlanForm& form = form_at(plan, part.form);
    for (uint32_t t = 0; t < form.num_terms; ++t) {
      const PlanTerm& term = terms_of(plan, form)[t];
      for (uint32_t k = 0; k < term.num_factors; ++k) {
        const uint32_t symbol = factors_of(plan, term)[k];
        if (symbols[symbol] >= 0) continue;
        ++unknown.count;
        unknown.symbol = symbol;
        unknown.part = &part;
        unknown.term = &term;
      }
    }
  }
  return unknown;
}

int64_t solve(const PlanHeader& plan, const PlanDim& dim, const Unknown& unknown, int64_t extent,
              const int64_t* symbols) {
  int64_t others = 1;
  for (uint32_t i = 0; i < dim.num_parts; ++i) {
    const PlanPart& part = parts_of(plan, dim)[i];
    if (&part == unknown.part) continue;
    others *= part.form < 0 ? part.most : form_value(plan, form_at(plan, part.form), symbols);
  }
  if (others == 0) return -1;
  const PlanForm& form = form_at(plan, unknown.part->form);
  // sum + factor * symbol >= divisor * wanted
  const int64_t wanted = extent <= 0 ? 0 : (extent - 1) / others + 1;
  int64_t sum = form.offset;
  int64_t factor = 0;
  for (uint32_t i = 0; i < form.num_terms; ++i) {
    const PlanTerm& term = terms_of(plan, form)[i];
    int64_t product = term.factor;
    for (uint32_t k = 0; k < term.num_factors; ++k) {
      const uint32_t symbol = factors_of(plan, term)[k];
      if (&term != unknown.term || symbol != unknown.symbol) product *= symbols[symbol];
    }
    if (&term == unknown.term)
      factor = product;
    else
      sum += product;
  }
  if (factor == 0) return -1;
  const int64_t left = form.divisor * wanted - sum;
  return left <= 0 ? 0 : (left - 1) / factor + 1;
}

}  // namespace hone::runtime
