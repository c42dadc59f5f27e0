#include "hone/graph/size_fit.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace hone::graph {
namespace {

using Symbols = std::vector<int64_t>;

int64_t largest_of(const std::vector<SizeSample>& samples, size_t symbol) {
  int64_t most = (*samples[0].symbols)[symbol];
  for (const SizeSample& sample : samples) most = std::max(most, (*sample.symbols)[symbol]);
  return most;
}

bool fits(const SizeForm& form, const std::vector<SizeSample>& samples) {
  return std::all_of(samples.begin(), samples.end(), [&](const SizeSample& sample) {
    return value_of(form, *sample.symbols) == sample.number;
  });
}

// The symbols that change the number, and by how much for one more of each.
struct Influence {
  std::vector<int> symbols;
  std::vector<int64_t> slopes;
  bool whole = true;  // all slopes are integers
};

// `base` is the sample of the largest sizes.
Influence influence_of(const std::vector<SizeSample>& samples, const SizeSample& base) {
  Influence influence;
  for (size_t s = 0; s < base.symbols->size(); ++s) {
    bool changes = false;
    int64_t slope = 0;
    for (const SizeSample& sample : samples) {
      Symbols alone = *base.symbols;
      alone[s] = (*sample.symbols)[s];
      if (alone != *sample.symbols || alone[s] == (*base.symbols)[s]) continue;
      const int64_t by = base.number - sample.number, over = (*base.symbols)[s] - alone[s];
      changes = changes || by != 0;
      if (slope == 0) slope = by / over;
      if (by != slope * over) influence.whole = false;
    }
    if (!changes) continue;
    influence.symbols.push_back(static_cast<int>(s));
    influence.slopes.push_back(slope);
  }
  return influence;
}

std::optional<SizeForm> fit_sum(const std::vector<SizeSample>& samples, const SizeSample& base,
                                const Influence& influence) {
  SizeForm form{.offset = base.number};
  for (size_t i = 0; i < influence.symbols.size(); ++i) {
    if (influence.slopes[i] <= 0) return std::nullopt;
    form.terms.push_back({influence.slopes[i], {influence.symbols[i]}});
    form.offset -= influence.slopes[i] * (*base.symbols)[static_cast<size_t>(influence.symbols[i])];
  }
  return fits(form, samples) ? std::optional(form) : std::nullopt;
}

std::optional<SizeForm> fit_product(const std::vector<SizeSample>& samples, const SizeSample& base,
                                    const Influence& influence) {
  int64_t product = 1;
  for (const int s : influence.symbols) product *= (*base.symbols)[static_cast<size_t>(s)];
  if (product == 0 || base.number < product || base.number % product != 0) return std::nullopt;
  const SizeForm form{.terms = {{base.number / product, influence.symbols}}};
  return fits(form, samples) ? std::optional(form) : std::nullopt;
}

// Numbers modulo a prime, in which systems of equations are solved exactly.
constexpr int64_t kPrime = 2147483647;  // 2^31 - 1: products of two numbers fit into 64 bits
int64_t reduced(int64_t x) { return (x % kPrime + kPrime) % kPrime; }
int64_t inverse(int64_t x) {
  int64_t power = x, result = 1;
  for (int64_t left = kPrime - 2; left > 0; left /= 2) {
    if (left % 2 == 1) result = result * power % kPrime;
    power = power * power % kPrime;
  }
  return result;
}

// Solves equations, rows of coefficients with the right side behind them; nullopt unless there is
// one solution.
std::optional<std::vector<int64_t>> solve(std::vector<std::vector<int64_t>> rows, size_t unknowns) {
  for (size_t column = 0; column < unknowns; ++column) {
    const auto pivot = std::find_if(rows.begin() + static_cast<long>(column), rows.end(),
                                    [&](const auto& row) { return row[column] != 0; });
    if (pivot == rows.end()) return std::nullopt;
    std::swap(*pivot, rows[column]);
    const int64_t scale = inverse(rows[column][column]);
    for (int64_t& x : rows[column]) x = x * scale % kPrime;
    for (size_t r = 0; r < rows.size(); ++r) {
      const int64_t factor = rows[r][column];
      for (size_t k = 0; r != column && factor != 0 && k <= unknowns; ++k)
        rows[r][k] = reduced(rows[r][k] - factor * rows[column][k] % kPrime);
    }
  }
  std::vector<int64_t> solution;
  for (size_t i = 0; i < unknowns; ++i) {
    const int64_t x = rows[i][unknowns];
    solution.push_back(x > kPrime / 2 ? x - kPrime : x);
  }
  return solution;
}

// The products of at most two of the symbols, or of three different ones, that a sum may have.
std::vector<std::vector<int>> products_of(const std::vector<int>& symbols, bool squares,
                                          bool triples) {
  std::vector<std::vector<int>> products;
  for (size_t i = 0; i < symbols.size(); ++i) {
    products.push_back({symbols[i]});
    for (size_t j = i + (squares ? 0 : 1); j < symbols.size(); ++j) {
      products.push_back({symbols[i], symbols[j]});
      for (size_t k = j + 1; triples && i < j && k < symbols.size(); ++k)
        products.push_back({symbols[i], symbols[j], symbols[k]});
    }
  }
  return products;
}

// A sum of products of symbols, none of which is subtracted: 1 + rows * columns.
std::optional<SizeForm> fit_sum_of(const std::vector<std::vector<int>>& products,
                                   const std::vector<SizeSample>& samples) {
  const size_t unknowns = products.size() + 1;
  if (samples.size() < unknowns) return std::nullopt;
  std::vector<std::vector<int64_t>> rows;
  for (const SizeSample& sample : samples) {
    std::vector<int64_t> row;
    for (const std::vector<int>& product : products) {
      int64_t value = 1;
      for (const int symbol : product)
        value = value * reduced((*sample.symbols)[static_cast<size_t>(symbol)]) % kPrime;
      row.push_back(value);
    }
    row.push_back(1);
    row.push_back(reduced(sample.number));
    rows.push_back(std::move(row));
  }
  const auto solution = solve(std::move(rows), unknowns);
  if (!solution) return std::nullopt;
  SizeForm form{.offset = solution->back()};
  for (size_t i = 0; i < products.size(); ++i) {
    if ((*solution)[i] < 0) return std::nullopt;
    if ((*solution)[i] > 0) form.terms.push_back({(*solution)[i], products[i]});
  }
  return fits(form, samples) ? std::optional(form) : std::nullopt;
}

std::optional<SizeForm> fit_sum_of_products(const std::vector<SizeSample>& samples,
                                            const std::vector<int>& symbols) {
  constexpr size_t kMostSymbols = 4;
  if (symbols.size() > kMostSymbols) return std::nullopt;
  for (const auto& [squares, triples] : {std::pair(false, false), {true, false}, {true, true}}) {
    if (auto form = fit_sum_of(products_of(symbols, squares, triples), samples)) return form;
  }
  return std::nullopt;
}

// floor((factor * s + offset) / divisor); nullopt if several give these numbers and differ at other
// sizes.
std::optional<SizeForm> fit_quotient(const std::vector<SizeSample>& samples, const SizeSample& base,
                                     int symbol) {
  std::optional<SizeForm> found;
  const int64_t at_base = (*base.symbols)[static_cast<size_t>(symbol)];
  int64_t least = at_base, least_number = base.number;
  for (const SizeSample& sample : samples) {
    const int64_t at = (*sample.symbols)[static_cast<size_t>(symbol)];
    if (at < least) least_number = sample.number;
    least = std::min(least, at);
  }
  const auto differ = [&](const SizeForm& a, const SizeForm& b) {
    Symbols at = *base.symbols;
    for (int64_t value = least; value <= at_base; ++value) {
      at[static_cast<size_t>(symbol)] = value;
      if (value_of(a, at) != value_of(b, at)) return true;
    }
    return false;
  };
  for (int64_t divisor = 2; divisor <= kMostFittedDivisor; ++divisor) {
    // The numbers at the ends of the range differ by the quotient of the range, to less than 1.
    const int64_t range = at_base - least, change = base.number - least_number;
    const int64_t first = (change - 1) * divisor / range, last = (change + 1) * divisor / range;
    for (int64_t factor = std::max<int64_t>(1, first); factor <= last; ++factor) {
      if (std::gcd(factor, divisor) != 1) continue;
      for (int64_t rest = 0; rest < divisor; ++rest) {
        const SizeForm form{.terms = {{factor, {symbol}}},
                            .offset = base.number * divisor - factor * at_base + rest,
                            .divisor = divisor};
        if (!fits(form, samples)) continue;
        if (found && differ(*found, form)) return std::nullopt;
        if (!found) found = form;
      }
    }
  }
  return found;
}

}  // namespace

std::optional<SizeForm> fit_form(const std::vector<SizeSample>& samples) {
  const SizeSample* base = nullptr;
  for (const SizeSample& sample : samples) {
    bool largest = true;
    for (size_t s = 0; s < sample.symbols->size(); ++s)
      largest = largest && (*sample.symbols)[s] == largest_of(samples, s);
    if (largest) base = &sample;
  }
  if (base == nullptr) return std::nullopt;
  for (size_t s = 0; s < base->symbols->size(); ++s) {
    const bool seen = std::any_of(samples.begin(), samples.end(), [&](const SizeSample& sample) {
      return (*sample.symbols)[s] != (*base->symbols)[s];
    });
    if (!seen) return std::nullopt;
  }
  const bool fixed = std::all_of(samples.begin(), samples.end(), [&](const SizeSample& sample) {
    return sample.number == base->number;
  });
  if (fixed) return SizeForm{.offset = base->number};
  const Influence influence = influence_of(samples, *base);
  if (influence.symbols.empty()) return std::nullopt;
  if (influence.whole) {
    if (const auto sum = fit_sum(samples, *base, influence)) return sum;
    if (const auto product = fit_product(samples, *base, influence)) return product;
  }
  if (const auto sum = fit_sum_of_products(samples, influence.symbols)) return sum;
  return influence.symbols.size() == 1 ? fit_quotient(samples, *base, influence.symbols[0])
                                       : std::nullopt;
}

bool same_form(const SizeForm& a, const SizeForm& b) {
  return a.offset == b.offset && a.divisor == b.divisor && a.least == b.least && a.most == b.most &&
         std::equal(a.terms.begin(), a.terms.end(), b.terms.begin(), b.terms.end(),
                    [](const SizeTerm& x, const SizeTerm& y) {
                      return x.factor == y.factor && x.symbols == y.symbols;
                    });
}

}  // namespace hone::graph
