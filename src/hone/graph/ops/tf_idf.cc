// TfIdfVectorizer on numbers: how often each of a pool of short runs of numbers (n-grams) stands in
// a row, with gaps or without.
#include "hone/graph/expand.h"
#include "hone/graph/ops/registry.h"

namespace hone::graph {
namespace {

class TfIdf {
 public:
  explicit TfIdf(ExpandContext& c) : c_(c) {}

  Status run() {
    HONE_RETURN_IF_ERROR(read());
    const bool one_row = c_.rank(0) == 1;
    const int64_t rows = one_row ? 1 : c_.shape(0)[0], length = c_.shape(0).back();
    x_ = c_.reshape(c_.cast(c_.input(0), DType::kI64), {rows, length});
    HONE_RETURN_IF_ERROR(check_tests(length));
    std::vector<ValueId> counts;  // [rows, grams] of each length
    constexpr int64_t kNoGram = -1, kNever = -2;
    std::vector<int64_t> from(static_cast<size_t>(columns_), kNoGram);
    counted_.assign(indexes_.size(), false);
    int64_t gram = 0, listed = 0;
    for (int64_t n = 1; n <= std::ssize(begins_); ++n) {
      const int64_t grams = grams_of(n);
      if (is_counted(n)) {
        const bool fits = steps_of(n, length) > 0;
        if (fits) counts.push_back(count(n, grams, rows, length));
        for (int64_t i = 0; i < grams; ++i) {
          const auto at = static_cast<size_t>(gram + i);
          int64_t& place = from[static_cast<size_t>(indexes_[at])];
          if (place != kNoGram)
            return c_.unsupported(
                "two n-grams of one place {} in ngram_indexes, expected a place for each",
                indexes_[at]);
          place = fits ? listed + i : kNever;
          counted_[at] = true;
        }
        listed += fits ? grams : 0;
      }
      gram += grams;
    }
    // Where no gram is counted, there is a column of zeros.
    HONE_ASSIGN_OR_RETURN(Tensor zeros, c_.new_constant(DType::kF32, {rows, 1}));
    counts.push_back(c_.constant(std::move(zeros)));
    for (int64_t& place : from) place = place < 0 ? listed : place;
    const ValueId all = c_.add("Concat", counts, {{"axis", int64_t{1}}});
    ValueId y = c_.add("Gather", {all, c_.integers(from)}, {{"axis", int64_t{1}}});
    c_.result(0, c_.reshape(weighted(y), one_row ? Shape{columns_} : Shape{rows, columns_}));
    return ok_status();
  }

 private:
  Status read() {
    const Attributes& a = c_.attributes();
    if (a.has("pool_strings"))
      return c_.unsupported("a pool of texts, expected numbers: encode texts before the model");
    if ((c_.dtype(0) != DType::kI32 && c_.dtype(0) != DType::kI64) || c_.rank(0) < 1 ||
        c_.rank(0) > 2)
      return c_.fail("data {} {}, expected i32 or i64 of rank 1 or 2", dtype_name(c_.dtype(0)),
                     to_string(c_.shape(0)));
    if (c_.extents_of(c_.input(0)) != kNoValue)
      return c_.unsupported("data whose shape depends on other data");
    pool_ = a.integers("pool_int64s");
    begins_ = a.integers("ngram_counts");
    indexes_ = a.integers("ngram_indexes");
    shortest_ = a.integer("min_gram_length", 1);
    longest_ = a.integer("max_gram_length", 1);
    most_skipped_ = a.integer("max_skip_count", 0);
    weights_ = a.get<std::vector<float>>("weights", {});
    mode_ = a.text("mode", "TF");
    if (mode_ != "TF" && mode_ != "IDF" && mode_ != "TFIDF")
      return c_.fail("mode '{}', expected TF, IDF or TFIDF", mode_);
    if (shortest_ < 1 || longest_ < shortest_ || most_skipped_ < 0)
      return c_.fail(
          "n-grams of {} to {} numbers with {} skipped, expected 1 number or more, not fewer at "
          "most than at least, and 0 skipped or more",
          shortest_, longest_, most_skipped_);
    return check_pool();
  }

  Status check_pool() {
    int64_t grams = 0;
    for (int64_t n = 1; n <= std::ssize(begins_); ++n) {
      const int64_t begin = begins_[static_cast<size_t>(n - 1)], end = end_of(n);
      if (begin < 0 || end < begin || end > std::ssize(pool_) || (end - begin) % n != 0)
        return c_.fail(
            "ngram_counts has n-grams of {} from {} to {}, expected places in the pool of {} with "
            "a multiple of {} numbers",
            n, begin, end, pool_.size(), n);
      grams += (end - begin) / n;
    }
    if (grams == 0 || grams != std::ssize(indexes_))
      return c_.fail("a pool of {} n-grams and {} ngram_indexes, expected one each", grams,
                     indexes_.size());
    if (!weights_.empty() && weights_.size() != indexes_.size())
      return c_.fail("{} weights of {} n-grams, expected none or one each", weights_.size(), grams);
    for (const int64_t index : indexes_) {
      if (index < 0 || index >= kMostColumns)
        return c_.fail("ngram_indexes has {}, expected 0 to {}", index, kMostColumns - 1);
      columns_ = std::max(columns_, index + 1);
    }
    return ok_status();
  }

  [[nodiscard]] int64_t end_of(int64_t n) const {
    return n < std::ssize(begins_) ? begins_[static_cast<size_t>(n)] : std::ssize(pool_);
  }
  [[nodiscard]] int64_t grams_of(int64_t n) const {
    return (end_of(n) - begins_[static_cast<size_t>(n - 1)]) / n;
  }

  [[nodiscard]] bool is_counted(int64_t n) const {
    return grams_of(n) > 0 && n >= shortest_ && n <= longest_;
  }

  // With how many distances between its numbers an n-gram of n fits into a row. Single numbers
  // have no gaps.
  [[nodiscard]] int64_t steps_of(int64_t n, int64_t length) const {
    if (length < n) return 0;
    return n == 1 ? 1 : std::min(most_skipped_, (length - 1) / (n - 1) - 1) + 1;
  }

  // Each number of an n-gram, at each distance, is a test of all places.
  Status check_tests(int64_t length) const {
    int64_t tests = 0;
    for (int64_t n = 1; n <= std::ssize(begins_) && tests <= kMostTests; ++n)
      tests += is_counted(n) ? n * steps_of(n, length) : 0;
    if (tests <= kMostTests) return ok_status();
    return c_.unsupported(
        "n-grams of up to {} numbers with up to {} skipped, in rows of {}: {} tests or more, "
        "expected at most {}",
        std::min(longest_, std::ssize(begins_)), most_skipped_, length, tests, kMostTests);
  }

  // Number k of the pool's grams of n numbers: [1, 1, grams].
  Tensor wanted(int64_t n, int64_t grams, int64_t k) const {
    Tensor numbers(DType::kI64, {1, 1, grams});
    const auto begin = static_cast<size_t>(begins_[static_cast<size_t>(n - 1)]);
    for (int64_t i = 0; i < grams; ++i)
      numbers.as<int64_t>()[static_cast<size_t>(i)] = pool_[begin + static_cast<size_t>(i * n + k)];
    return numbers;
  }

  // How often the pool's grams of n numbers stand in each row, which has room for them.
  ValueId count(int64_t n, int64_t grams, int64_t rows, int64_t length) {
    std::vector<ValueId> pool;
    for (int64_t k = 0; k < n; ++k) pool.push_back(c_.constant(wanted(n, grams, k)));
    ValueId sum = kNoValue;
    for (int64_t step = 1; step <= steps_of(n, length); ++step) {
      const int64_t starts = length - (n - 1) * step;
      ValueId found = kNoValue;
      for (int64_t k = 0; k < n; ++k) {
        const ValueId numbers =
            c_.reshape(c_.slice(x_, 1, k * step, k * step + starts), {rows, starts, 1});
        const ValueId equal = c_.binary("Equal", numbers, pool[static_cast<size_t>(k)]);
        found = found == kNoValue ? equal : c_.binary("And", found, equal);
      }
      const ValueId times = c_.reduce("ReduceSum", c_.cast(found, DType::kF32), {1}, false);
      sum = sum == kNoValue ? times : c_.binary("Add", sum, times);
    }
    return sum;
  }

  // By the weights of the n-grams, which are 1 if there are none. What is not there stays 0, not
  // -0.
  ValueId weighted(ValueId counts) {
    if (mode_ == "TF") return counts;
    const ValueId there = c_.binary("Greater", counts, 0.0);
    if (mode_ == "IDF") counts = c_.cast(there, DType::kF32);
    if (weights_.empty()) return counts;
    Tensor factors(DType::kF32, {columns_});
    for (size_t i = 0; i < weights_.size(); ++i) {
      if (counted_[i]) factors.set(indexes_[i], static_cast<double>(weights_[i]));
    }
    const ValueId products = c_.binary("Mul", counts, c_.constant(std::move(factors)));
    return c_.add("Where", {there, products, counts});
  }

  static constexpr int64_t kMostColumns = 10'000'000;
  static constexpr int64_t kMostTests = 4096;
  ExpandContext& c_;
  std::vector<int64_t> pool_, begins_, indexes_;
  std::vector<float> weights_;
  std::vector<bool> counted_;  // by n-gram
  int64_t shortest_ = 1, longest_ = 1, most_skipped_ = 0, columns_ = 0;
  std::string mode_;
  ValueId x_ = kNoValue;
};

Status expand_tf_idf(ExpandContext& c) { return TfIdf(c).run(); }

}  // namespace

std::span<const Op> tf_idf_ops() {
  static const Op ops[] = {
      expanded_op("TfIdfVectorizer", 9, {},
                  "max_gram_length:i max_skip_count:i min_gram_length:i mode:s ngram_counts:is "
                  "ngram_indexes:is pool_int64s:is pool_strings:ss weights:fs",
                  expand_tf_idf)};
  return ops;
}

}  // namespace hone::graph
