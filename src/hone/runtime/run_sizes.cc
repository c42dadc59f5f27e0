#include "hone/runtime/run_sizes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hone/runtime/model_state.h"

namespace hone::runtime {
namespace {

const PlanSymbol& symbol_at(const PlanHeader& plan, uint32_t i) {
  return plan_table<PlanSymbol>(plan, plan.symbols)[i];
}
const int64_t* largest_shape(const PlanHeader& plan, const PlanTensor& tensor) {
  return plan_table<int64_t>(plan, tensor.shape);
}
const char* input_name(const PlanHeader& plan, int input) {
  return plan_string(plan, plan_input(plan, input).name);
}

// The values of symbols that the shapes of inputs tell; less than 0 where none does.
struct Symbols {
  int64_t value[kMaxSymbols];
  int32_t input[kMaxSymbols];  // that tells it
};

void forget(const PlanHeader& plan, Symbols& symbols) {
  for (uint32_t i = 0; i < plan.num_symbols; ++i) symbols.value[i] = symbols.input[i] = -1;
}

void evaluate(const PlanHeader& plan, const int64_t* symbols, int64_t* forms) {
  for (uint32_t f = 0; f < plan.num_forms; ++f)
    forms[f] = form_value(plan, plan_table<PlanForm>(plan, plan.forms)[f], symbols);
}

// "dimension 1 (past + seq)"
void name_dim(const PlanHeader& plan, const PlanTensor& tensor, int d, char* text, size_t bytes) {
  const char* name = tensor.dims == 0 ? "" : plan_string(plan, plan_dim(plan, tensor, d).text);
  snprintf(text, bytes, name[0] == '\0' ? "dimension %d%s" : "dimension %d (%s)", d, name);
}

// Appends ": seq is 5 by input 'ids'" for each symbol of a dimension that another input tells.
void add_reasons(const PlanHeader& plan, int input, const PlanDim& dim, const Symbols& symbols,
                 char* message) {
  for (uint32_t s = 0; s < plan.num_symbols; ++s) {
    if (symbols.input[s] < 0 || symbols.input[s] == input) continue;
    int64_t known[kMaxSymbols];
    memset(known, 0, sizeof known);
    known[s] = -1;
    if (find_unknown(plan, dim, known).count == 0) continue;
    const size_t used = strlen(message);
    snprintf(message + used, kErrorBytes - used, ": %s is %lld by input '%s'",
             plan_string(plan, symbol_at(plan, s).name), static_cast<long long>(symbols.value[s]),
             input_name(plan, symbols.input[s]));
  }
}

// Finds the symbols that this shape of an input tells beside those that are known. Returns false if
// one is out of its range.
bool tell(const PlanHeader& plan, int input, const int64_t* dims, Symbols& symbols, bool& found,
          char* message) {
  const PlanTensor& tensor = plan_input(plan, input);
  for (int d = 0; tensor.dims != 0 && d < tensor.rank; ++d) {
    const PlanDim& dim = plan_dim(plan, tensor, d);
    const Unknown unknown = find_unknown(plan, dim, symbols.value);
    if (unknown.count != 1) continue;
    const int64_t value = solve(plan, dim, unknown, dims[d], symbols.value);
    if (value < 0) continue;
    const PlanSymbol& symbol = symbol_at(plan, unknown.symbol);
    if (value < symbol.min || value > symbol.max) {
      char name[kErrorBytes / 2];
      name_dim(plan, tensor, d, name, sizeof name);
      say(message, "input '%s': %s is %lld, with which %s would be %lld, expected %lld to %lld",
          input_name(plan, input), name, static_cast<long long>(dims[d]),
          plan_string(plan, symbol.name), static_cast<long long>(value),
          static_cast<long long>(symbol.min), static_cast<long long>(symbol.max));
      add_reasons(plan, input, dim, symbols, message);
      return false;
    }
    symbols.value[unknown.symbol] = value;
    symbols.input[unknown.symbol] = input;
    found = true;
  }
  return true;
}

int64_t extent_of(const PlanHeader& plan, const PlanDim& dim, const int64_t* symbols) {
  int64_t extent = 1;
  for (uint32_t i = 0; i < dim.num_parts; ++i) {
    const PlanPart& part = parts_of(plan, dim)[i];
    const PlanForm* forms = plan_table<PlanForm>(plan, plan.forms);
    extent *= part.form < 0 ? part.most : form_value(plan, forms[part.form], symbols);
  }
  return extent;
}

// The values of all symbols, the largest of those that no input tells.
void fill_up(const PlanHeader& plan, const Symbols& symbols, int64_t* values) {
  for (uint32_t s = 0; s < plan.num_symbols; ++s)
    values[s] = symbols.value[s] >= 0 ? symbols.value[s] : symbol_at(plan, s).max;
}

// Returns of what a dimension is a multiple: the factor of a single symbol.
int64_t step_of(const PlanHeader& plan, const PlanDim& dim) {
  const PlanPart& part = parts_of(plan, dim)[0];
  if (dim.num_parts != 1 || part.form < 0) return 1;
  const PlanForm& form = plan_table<PlanForm>(plan, plan.forms)[part.form];
  if (form.num_terms != 1 || form.offset != 0 || form.divisor != 1) return 1;
  const int64_t factor = plan_table<PlanTerm>(plan, plan.terms)[form.first_term].factor;
  return factor > 0 ? factor : 1;
}

// Compares a shape of an input with the symbols. `all` tells whether those that are not known will
// be the largest.
bool agrees(const PlanHeader& plan, int input, const int64_t* dims, const Symbols& symbols,
            bool all, char* message) {
  const PlanTensor& tensor = plan_input(plan, input);
  int64_t values[kMaxSymbols];
  fill_up(plan, symbols, values);
  for (int d = 0; tensor.dims != 0 && d < tensor.rank; ++d) {
    const PlanDim& dim = plan_dim(plan, tensor, d);
    const Unknown unknown = find_unknown(plan, dim, symbols.value);
    if (unknown.count > 0 && !all) continue;
    const int64_t extent = extent_of(plan, dim, values);
    if (extent == dims[d]) continue;
    char name[kErrorBytes / 2];
    name_dim(plan, tensor, d, name, sizeof name);
    const int64_t step = step_of(plan, dim);
    if (dims[d] % step != 0) {
      say(message, "input '%s': %s is %lld, expected a multiple of %lld", input_name(plan, input),
          name, static_cast<long long>(dims[d]), static_cast<long long>(step));
      return false;
    }
    if (unknown.count > 0) {
      say(message, "input '%s': %s is %lld, but no input tells %s: set the shapes of others, too",
          input_name(plan, input), name, static_cast<long long>(dims[d]),
          plan_string(plan, symbol_at(plan, unknown.symbol).name));
    } else {
      say(message, "input '%s': %s is %lld, expected %lld", input_name(plan, input), name,
          static_cast<long long>(dims[d]), static_cast<long long>(extent));
    }
    add_reasons(plan, input, dim, symbols, message);
    return false;
  }
  return true;
}

bool in_range(const RunSizes& sizes, int input, int rank, const int64_t* dims, char* message) {
  const PlanHeader& plan = *sizes.plan;
  const PlanTensor& tensor = plan_input(plan, input);
  if (rank == tensor.rank && rank > 0 && dims == nullptr) {
    say(message, "input '%s': found no extents (NULL), expected %d of them",
        input_name(plan, input), rank);
    return false;
  }
  if (rank != tensor.rank) {
    say(message, "input '%s': found a shape of rank %d, expected rank %d", input_name(plan, input),
        rank, tensor.rank);
    return false;
  }
  const int64_t* least = sizes.least + int64_t{input} * kMaxRank;
  const int64_t* most = largest_shape(plan, tensor);
  for (int d = 0; d < rank; ++d) {
    if (dims[d] >= least[d] && dims[d] <= most[d]) continue;
    char name[kErrorBytes / 2];
    name_dim(plan, tensor, d, name, sizeof name);
    if (least[d] == most[d])
      say(message, "input '%s': %s is %lld, expected %lld", input_name(plan, input), name,
          static_cast<long long>(dims[d]), static_cast<long long>(most[d]));
    else
      say(message, "input '%s': %s is %lld, expected %lld to %lld", input_name(plan, input), name,
          static_cast<long long>(dims[d]), static_cast<long long>(least[d]),
          static_cast<long long>(most[d]));
    return false;
  }
  return true;
}

// Finds all symbols that the given shapes tell, and compares all shapes with them.
bool tell_all(const RunSizes& sizes, Symbols& symbols, char* message) {
  const PlanHeader& plan = *sizes.plan;
  const int num_inputs = static_cast<int>(plan.num_inputs);
  const auto given = [&](int input) { return sizes.given + int64_t{input} * kMaxRank; };
  for (bool found = true; found;) {
    found = false;
    for (int i = 0; i < num_inputs; ++i) {
      if (sizes.is_given[i] && !tell(plan, i, given(i), symbols, found, message)) return false;
    }
  }
  for (int i = 0; i < num_inputs; ++i) {
    if (sizes.is_given[i] && !agrees(plan, i, given(i), symbols, true, message)) return false;
  }
  return true;
}

// Sets all that follows from the values of the symbols.
void apply(RunSizes& sizes, const int64_t* symbols) {
  const PlanHeader& plan = *sizes.plan;
  evaluate(plan, symbols, sizes.forms);
  for (int i = 0; i < num_tensors(plan); ++i) {
    const PlanTensor& tensor = tensor_at(plan, i);
    if (tensor.dims == 0) continue;
    int64_t* shape = sizes.shapes + int64_t{i} * kMaxRank;
    int64_t all = 1, elements = 1;
    sizes.is_whole[i] = true;
    for (int d = 0; d < tensor.rank; ++d) {
      const int64_t most = largest_shape(plan, tensor)[d];
      shape[d] = dim_value(plan, plan_dim(plan, tensor, d), sizes.forms);
      sizes.is_whole[i] = sizes.is_whole[i] && shape[d] == most;
      all *= most;
      elements *= shape[d];
    }
    sizes.bytes[i] = all == 0 ? 0 : tensor.bytes / all * elements;
  }
}

// The part of a tensor that a run has: rows of one length, each `row_bytes`, in the array of the
// largest shape. Dimensions that are whole are a part of the rows.
struct Box {
  int rank = 0;
  int64_t count[kMaxParts] = {};   // of the rows, per dimension
  int64_t stride[kMaxParts] = {};  // bytes from one to the next in the wide array
  int64_t row_bytes = 0;
};

Box box_of(const RunSizes& sizes, int index) {
  const PlanHeader& plan = *sizes.plan;
  const PlanTensor& tensor = tensor_at(plan, index);
  Box box;
  int64_t most[kMaxParts] = {};
  int64_t elements = 1;
  for (int d = 0; d < tensor.rank; ++d) {
    const PlanDim& dim = plan_dim(plan, tensor, d);
    for (uint32_t i = 0; i < dim.num_parts; ++i) {
      const PlanPart& part = parts_of(plan, dim)[i];
      box.count[box.rank] = part.form < 0 ? part.most : sizes.forms[part.form];
      most[box.rank++] = part.most;
      elements *= part.most;
    }
  }
  int64_t wide = elements == 0 ? 0 : tensor.bytes / elements;
  for (int k = box.rank; k-- > 0;) {
    box.stride[k] = wide;
    wide *= most[k];
  }
  while (box.rank > 0 && box.count[box.rank - 1] == most[box.rank - 1]) --box.rank;
  if (box.rank == 0) {
    box.row_bytes = tensor.bytes;
  } else {
    --box.rank;
    box.row_bytes = box.count[box.rank] * box.stride[box.rank];
  }
  return box;
}

// Calls copy(wide, dense, bytes) for each row.
template <typename Copy>
void for_rows(const RunSizes& sizes, int tensor, char* wide, char* dense, const Copy& copy) {
  if (sizes.bytes[tensor] == 0) return;
  const Box box = box_of(sizes, tensor);
  int64_t at[kMaxParts] = {};
  while (true) {
    copy(wide, dense, static_cast<size_t>(box.row_bytes));
    dense += box.row_bytes;
    int k = box.rank - 1;
    for (; k >= 0; --k) {
      wide += box.stride[k];
      if (++at[k] < box.count[k]) break;
      wide -= box.stride[k] * box.count[k];
      at[k] = 0;
    }
    if (k < 0) return;
  }
}

}  // namespace

bool sizes_create(RunSizes& sizes, const PlanHeader& plan) {
  const auto tensors = static_cast<uint64_t>(num_tensors(plan));
  if (!allocate(sizes.shapes, tensors * kMaxRank) || !allocate(sizes.least, tensors * kMaxRank) ||
      !allocate(sizes.bytes, tensors) || !allocate(sizes.is_whole, tensors) ||
      !allocate(sizes.given, uint64_t{plan.num_inputs} * kMaxRank) ||
      !allocate(sizes.is_given, plan.num_inputs) || !allocate(sizes.conflict, kErrorBytes))
    return false;
  sizes.plan = &plan;
  for (int i = 0; i < num_tensors(plan); ++i) {
    const PlanTensor& tensor = tensor_at(plan, i);
    sizes.bytes[i] = tensor.bytes;
    sizes.is_whole[i] = true;
    for (int32_t d = 0; d < tensor.rank; ++d)
      sizes.shapes[i * kMaxRank + d] = sizes.least[i * kMaxRank + d] =
          largest_shape(plan, tensor)[d];
  }
  if (!varies(plan)) return true;
  int64_t symbols[kMaxSymbols];
  for (uint32_t s = 0; s < plan.num_symbols; ++s) symbols[s] = symbol_at(plan, s).min;
  apply(sizes, symbols);
  memcpy(sizes.least, sizes.shapes, tensors * kMaxRank * sizeof(int64_t));
  for (uint32_t s = 0; s < plan.num_symbols; ++s) symbols[s] = symbol_at(plan, s).max;
  apply(sizes, symbols);
  return true;
}

void sizes_destroy(RunSizes& sizes) {
  free(sizes.shapes);
  free(sizes.least);
  free(sizes.bytes);
  free(sizes.is_whole);
  free(sizes.given);
  free(sizes.is_given);
  free(sizes.conflict);
}

bool sizes_set(RunSizes& sizes, int input, int rank, const int64_t* dims, char* message) {
  const PlanHeader& plan = *sizes.plan;
  if (!in_range(sizes, input, rank, dims, message)) return false;
  Symbols symbols;
  forget(plan, symbols);
  for (bool found = true; found;) {
    found = false;
    if (!tell(plan, input, dims, symbols, found, message)) return false;
  }
  if (!agrees(plan, input, dims, symbols, false, message)) return false;
  sizes.is_given[input] = true;
  for (int d = 0; d < rank; ++d) sizes.given[int64_t{input} * kMaxRank + d] = dims[d];
  sizes.conflict[0] = '\0';
  forget(plan, symbols);
  if (tell_all(sizes, symbols, sizes.conflict)) {
    int64_t values[kMaxSymbols];
    fill_up(plan, symbols, values);
    apply(sizes, values);
  }
  return true;
}

void copy_from_dense(const RunSizes& sizes, int tensor, const void* dense, char* wide) {
  for_rows(sizes, tensor, wide, static_cast<char*>(const_cast<void*>(dense)),
           [](char* to, const char* from, size_t bytes) { memcpy(to, from, bytes); });
}

void copy_to_dense(const RunSizes& sizes, int tensor, const char* wide, void* dense) {
  for_rows(sizes, tensor, const_cast<char*>(wide), static_cast<char*>(dense),
           [](const char* from, char* to, size_t bytes) { memcpy(to, from, bytes); });
}

}  // namespace hone::runtime
