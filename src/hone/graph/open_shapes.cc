#include "hone/graph/open_shapes.h"

#include <algorithm>
#include <numeric>

#include "hone/base/closest_name.h"
#include "hone/graph/open_dims.h"
#include "hone/graph/some_names.h"

namespace hone::graph {
namespace {

class Resolver {
 public:
  Resolver(const onnx::GraphProto& graph, const ImportOptions& options, const std::string& file)
      : options_(options), file_(file) {
    const std::set<std::string> constants = constant_initializers(graph, options);
    for (const auto& input : graph.input()) {
      if (!constants.contains(input.name())) inputs_.push_back(read_file_input(input));
    }
    name_states();
    for (const FileInput& input : inputs_) collect_symbols(input);
  }

  Result<OpenShapes> run() {
    HONE_RETURN_IF_ERROR(read_equal_symbols());
    HONE_RETURN_IF_ERROR(read_symbols());
    HONE_RETURN_IF_ERROR(read_given());
    const GivenSizes given = {ranges_, numbers_};  // without ranges by the rule
    std::vector<OpenInput> open;
    for (const FileInput& input : inputs_) {
      if (options_.bind.contains(input.name) || !input.is_tensor) continue;
      HONE_ASSIGN_OR_RETURN(const auto forms, forms_of(input));
      if (forms) {
        HONE_RETURN_IF_ERROR(add(input.name, *forms));
      } else {
        open.push_back(undecided_input(input, given));
      }
    }
    HONE_RETURN_IF_ERROR(open_inputs(open, file_));
    HONE_RETURN_IF_ERROR(check_used());
    HONE_RETURN_IF_ERROR(check_told());
    note_unnamed();
    say_taken();
    return std::move(result_);
  }

 private:
  // Names the batch of states, and of inputs that begin with it.
  void name_states() {
    const auto begins_open = [](const FileInput& input) {
      return !input.dims.empty() && input.dims[0].extent < 0 && input.dims[0].name.empty();
    };
    const auto is_state = [](const FileInput& input) {
      return input.dims.size() == 3 && input.dims[0].extent > 0 && input.dims[1].extent < 0 &&
             input.dims[1].name.empty();
    };
    result_.may_batch_states = std::any_of(inputs_.begin(), inputs_.end(), begins_open) &&
                               std::any_of(inputs_.begin(), inputs_.end(), is_state);
    if (!options_.batched_states || !result_.may_batch_states) return;
    for (FileInput& input : inputs_) {
      if (begins_open(input)) input.dims[0].name = rule_name(DimKind::kBatch);
      if (is_state(input)) input.dims[1].name = rule_name(DimKind::kBatch);
    }
  }

  // Notes the symbols that a dimension of the input has by the file, or else by the rule.
  void collect_symbols(const FileInput& input) {
    const bool is_decided =
        !options_.open_ranges || !input.is_tensor || options_.bind.contains(input.name) ||
        options_.shapes.contains(input.name) || options_.ranges.contains(input.name);
    for (size_t d = 0; d < input.dims.size(); ++d) {
      const FileDim& dim = input.dims[d];
      if (dim.extent >= 0) continue;
      if (dim.name.empty()) {
        if (!is_decided && dim.by_place != DimKind::kSide)
          file_symbols_.insert(rule_name(dim.by_place));
        continue;
      }
      for (const std::string& term : terms_of(dim.name)) {
        if (!number_of(term)) file_symbols_.insert(term);
      }
    }
  }

  [[nodiscard]] bool is_input(const std::string& name) const {
    return std::any_of(inputs_.begin(), inputs_.end(),
                       [&](const FileInput& input) { return input.name == name; });
  }

  // Returns whether the file has a symbol, or an option uses it for an extent of an input.
  [[nodiscard]] bool is_symbol(const std::string& name) const {
    return file_symbols_.contains(name) ||
           std::any_of(options_.ranges.begin(), options_.ranges.end(), [&](const auto& entry) {
             return is_input(entry.first) &&
                    std::any_of(entry.second.begin(), entry.second.end(),
                                [&](const DimRange& dim) { return dim.symbol == name; });
           });
  }

  // Reads which symbols are equal to another one, and names their dimensions so.
  Status read_equal_symbols() {
    for (const auto& [name, range] : options_.ranges) {
      if (is_input(name) || !is_symbol(name)) continue;
      if (const std::string other = named_by(range); !other.empty()) equal_[name] = other;
    }
    for (const auto& [name, other] : equal_) {
      if (equal_.contains(equal_name(name)))
        return invalid("{}: '{}' is equal to '{}', expected a symbol that is equal to no other",
                       file_, name, other);
    }
    for (FileInput& input : inputs_) {
      for (FileDim& dim : input.dims) {
        if (dim.extent < 0 && !equal_.empty()) dim.name = equal_name_of(dim);
      }
    }
    return ok_status();
  }

  // Returns the name that --shape NAME=OTHER gives, or "". Such a text is divided at each x, so
  // that parts of a name of the file, as "max2" is one, may be numbers.
  [[nodiscard]] std::string named_by(const ShapeRange& range) const {
    std::string name;
    bool has_numbers = false;
    for (const DimRange& dim : range) {
      if (!dim.is_number() && (dim.symbol.empty() || dim.max != 0)) return "";
      has_numbers = has_numbers || dim.is_number();
      name += (name.empty() ? "" : "x") + (dim.is_number() ? std::to_string(dim.min) : dim.symbol);
    }
    return has_numbers && !is_symbol(name) ? "" : name;
  }

  [[nodiscard]] std::string equal_name(std::string name) const {
    for (size_t i = 0; i < equal_.size(); ++i) {
      const auto at = equal_.find(name);
      if (at == equal_.end()) break;
      name = at->second;
    }
    return name;
  }

  [[nodiscard]] std::string equal_name_of(const FileDim& dim) const {
    if (dim.name.empty()) {
      const std::string rule = dim.by_place == DimKind::kSide ? "" : rule_name(dim.by_place);
      return equal_.contains(rule) ? equal_name(rule) : dim.name;
    }
    std::string sum;
    for (const std::string& term : terms_of(dim.name))
      sum += (sum.empty() ? "" : " + ") + equal_name(term);
    return sum;
  }

  // Reads the ranges of symbols, which are entries of one dimension that name no input.
  Status read_symbols() {
    std::set<std::string> symbols = file_symbols_;
    for (const auto& [name, range] : options_.ranges) {
      for (const DimRange& dim : range) symbols.insert(dim.symbol);
    }
    for (const auto& [name, other] : equal_) symbols.insert(other);
    symbols.erase("");
    std::map<std::string, ShapeRange> entries = options_.ranges;
    for (const auto& [name, shape] : options_.shapes) {
      for (const int64_t extent : shape) entries[name].push_back({extent, extent, {}});
    }
    for (const auto& [name, range] : entries) {
      if (is_input(name) || equal_.contains(name)) continue;
      if (!symbols.contains(name)) {
        std::vector<std::string> names;
        for (const FileInput& input : inputs_) names.push_back(input.name);
        std::vector<std::string> known(symbols.begin(), symbols.end());
        const std::string said =
            fmt::format("{}: a shape is given for '{}', which is no input{}{}{}{}", file_, name,
                        names.empty() ? "" : ": the inputs are ", some_names(names),
                        symbols.empty() ? "" : ", the symbols ", some_names(known));
        known.insert(known.end(), names.begin(), names.end());
        return invalid("{}{}", said, did_you_mean(name, known));
      }
      if (range.size() != 1 || !range[0].symbol.empty())
        return invalid("{}: '{}' is a symbol, found {} extents, expected one range such as 1..8",
                       file_, name, range.size());
      HONE_RETURN_IF_ERROR(check(name, range[0]));
      ranges_[name] = range[0];
    }
    return ok_status();
  }

  [[nodiscard]] Status check(const std::string& name, const DimRange& range) const {
    if (range.min >= 0 && range.min <= range.max) return ok_status();
    return invalid(
        "{}: '{}' has the range {}..{}, expected the smallest size, at least 0, before the largest",
        file_, name, range.min, range.max);
  }

  // Reads what the shapes and ranges of inputs say of symbols.
  Status read_given() {
    for (const FileInput& input : inputs_) {
      const auto range = options_.ranges.find(input.name);
      if (range != options_.ranges.end()) {
        if (input.has_rank && range->second.size() != input.dims.size())
          return invalid("{}: {} extents are given for input '{}', which has {} dimensions", file_,
                         range->second.size(), input.name, input.dims.size());
        for (size_t d = 0; d < range->second.size(); ++d) {
          const DimRange& dim = range->second[d];
          if (dim.is_number()) {
            note_number(input, d, dim.min);
          } else if (dim.min != 0 || dim.max != 0) {
            HONE_RETURN_IF_ERROR(define(symbol_of(input, d, dim), dim, input.name));
          }
        }
      }
      const auto shape = options_.shapes.find(input.name);
      for (size_t d = 0; shape != options_.shapes.end() && d < shape->second.size(); ++d)
        note_number(input, d, shape->second[d]);
    }
    return ok_status();
  }

  // A number that an option gives holds for other inputs with the same symbol, too, unless an
  // option says otherwise.
  void note_number(const FileInput& input, size_t d, int64_t extent) {
    if (d >= input.dims.size() || input.dims[d].name.empty()) return;
    numbers_.emplace(input.dims[d].name, extent);
  }

  Status define(const std::string& symbol, const DimRange& range, const std::string& input) {
    HONE_RETURN_IF_ERROR(check(symbol, range));
    const auto [at, is_new] = ranges_.emplace(symbol, range);
    if (is_new || (at->second.min == range.min && at->second.max == range.max)) return ok_status();
    return invalid("{}: '{}' is {}..{} in input '{}' and {}..{} elsewhere, and has one range",
                   file_, symbol, range.min, range.max, input, at->second.min, at->second.max);
  }

  std::string symbol_of(const FileInput& input, size_t d, const DimRange& dim) const {
    if (!dim.symbol.empty()) return equal_name(dim.symbol);
    const std::string name = d < input.dims.size() ? input.dims[d].name : "";
    return name.empty() || terms_of(name).size() > 1 ? fmt::format("{}.{}", input.name, d) : name;
  }

  // Returns the index of a symbol; a number if its range has only one.
  SizeForm form_of(const std::string& name, const DimRange& range, int64_t step = 1) {
    if (range.min == range.max) return SizeForm{.offset = range.min};
    std::vector<SizeSymbol>& symbols = result_.symbols;
    const auto at = std::find_if(symbols.begin(), symbols.end(),
                                 [&](const SizeSymbol& symbol) { return symbol.name == name; });
    const auto index = static_cast<int>(at - symbols.begin());
    if (at == symbols.end()) symbols.push_back({name, range.min / step, range.max / step});
    return SizeForm{.terms = {{step, {index}}}};
  }

  // Returns the form of a symbol, or nullopt if it has to be given.
  std::optional<SizeForm> symbol_form(const std::string& name, DimKind by_place) {
    const DimKind kind = kind_of(name, by_place);
    used_.insert(!name.empty() || kind == DimKind::kSide ? name : rule_name(kind));
    if (const auto at = ranges_.find(name); at != ranges_.end()) {
      // One step for all places of a symbol, of which some may not look like a side.
      int64_t step = kind == DimKind::kSide ? side_step(at->second) : 1;
      if (step == 1) step = given_step(name, at->second);
      return form_of(name, at->second, steps_.emplace(name, step).first->second);
    }
    if (const auto at = numbers_.find(name); at != numbers_.end())
      return SizeForm{.offset = at->second};
    if (kind == DimKind::kSide) return std::nullopt;
    const bool batch = kind == DimKind::kBatch;
    const std::string symbol = !name.empty() ? name : rule_name(kind);
    if (const auto at = ranges_.find(symbol); at != ranges_.end()) {
      const int64_t step = given_step(symbol, at->second);
      return form_of(symbol, at->second, steps_.emplace(symbol, step).first->second);
    }
    const DimRange range = {1, batch ? options_.most_batch : options_.most_sequence, {}};
    ranges_[symbol] = range;
    taken_.push_back(symbol);
    (batch ? result_.batches : result_.sequences).push_back(symbol);
    return form_of(symbol, range);
  }

  // Returns the step of ImportOptions::steps in which a symbol is counted.
  [[nodiscard]] int64_t given_step(const std::string& name, const DimRange& range) const {
    const auto at = options_.steps.find(name);
    return at == options_.steps.end() || range.min == range.max ? 1 : at->second;
  }

  // Returns the step in which a side is counted.
  int64_t side_step(const DimRange& range) {
    if (range.min == range.max) return 1;
    result_.side_divisor = std::gcd(result_.side_divisor, std::gcd(range.min, range.max));
    return options_.side_step;
  }

  std::optional<SizeForm> open_form(const FileDim& dim) {
    if (const auto at = ranges_.find(dim.name); at != ranges_.end())
      return symbol_form(dim.name, dim.by_place);
    SizeForm sum;
    for (const std::string& term : terms_of(dim.name)) {
      if (const std::optional<int64_t> number = number_of(term)) {
        sum.offset += *number;
        continue;
      }
      const auto form = symbol_form(term, dim.by_place);
      if (!form) return std::nullopt;
      sum.offset += form->offset;
      sum.terms.insert(sum.terms.end(), form->terms.begin(), form->terms.end());
    }
    return sum;
  }

  // Returns nullopt inside if the input is open and nothing decides it; no forms if the model
  // decides it.
  Result<std::optional<std::vector<SizeForm>>> forms_of(const FileInput& input) {
    std::vector<SizeForm> forms;
    const auto shape = options_.shapes.find(input.name);
    if (shape != options_.shapes.end()) {
      for (const int64_t extent : shape->second) forms.push_back({.offset = extent});
      return std::optional(forms);
    }
    const auto range = options_.ranges.find(input.name);
    const bool given = range != options_.ranges.end();
    const size_t rank = given ? range->second.size() : input.dims.size();
    if (!given && !input.has_rank) return std::optional<std::vector<SizeForm>>();
    for (size_t d = 0; d < rank; ++d) {
      const FileDim dim = d < input.dims.size()
                              ? input.dims[d]
                              : FileDim{.by_place = kind_by_place(d, rank, false)};
      if (given && range->second[d].is_number()) {
        forms.push_back({.offset = range->second[d].min});
      } else if (!given && dim.extent >= 0) {
        forms.push_back({.offset = dim.extent});
      } else {
        if (!given && !options_.open_ranges) return std::optional<std::vector<SizeForm>>();
        const auto form = given ? symbol_form(symbol_of(input, d, range->second[d]), dim.by_place)
                                : open_form(dim);
        if (!form) return std::optional<std::vector<SizeForm>>();
        forms.push_back(*form);
      }
    }
    return std::optional(forms);
  }

  Status add(const std::string& name, const std::vector<SizeForm>& forms) {
    std::vector<int64_t> most;
    for (const SizeSymbol& symbol : result_.symbols) most.push_back(symbol.max);
    Shape shape;
    bool varies = false;
    for (const SizeForm& form : forms) {
      shape.push_back(value_of(form, most));
      varies = varies || !form.terms.empty();
    }
    const auto input = std::find_if(inputs_.begin(), inputs_.end(),
                                    [&](const FileInput& one) { return one.name == name; });
    bool declared = input->has_rank && shape.size() == input->dims.size();
    for (size_t d = 0; declared && d < shape.size(); ++d)
      declared = shape[d] == input->dims[d].extent;
    // What the model says needs no option.
    if (!declared || varies) result_.shapes[name] = shape;
    if (varies) result_.inputs[name] = forms;
    return ok_status();
  }

  // Checks that a dimension has each symbol that an option gives a range or a number.
  [[nodiscard]] Status check_used() const {
    std::set<std::string> given;
    for (const auto& [name, range] : options_.ranges) given.insert(name);
    for (const auto& [name, shape] : options_.shapes) given.insert(name);
    std::set<std::string> used = used_;
    used.erase("");
    for (const std::string& name : given) {
      if (is_input(name) || used.contains(equal_name(name)) || is_said_twice(name)) continue;
      const std::vector<std::string> known(used.begin(), used.end());
      return invalid("{}: a range is given for '{}', which no open dimension has{}{}{}", file_,
                     name, used.empty() ? ", as there is none" : ": the symbols are ",
                     some_names(known), did_you_mean(name, known));
    }
    return ok_status();
  }

  // Returns whether the shape of an input gives the same number in the place of a symbol.
  [[nodiscard]] bool is_said_twice(const std::string& symbol) const {
    const auto number = numbers_.find(symbol);
    const auto range = ranges_.find(symbol);
    return number != numbers_.end() && range != ranges_.end() &&
           range->second.min == number->second && range->second.max == number->second;
  }

  // The symbols of a form that are not known; one that occurs twice is there twice.
  static std::vector<int> unknown_of(const SizeForm& form, const std::set<int>& known) {
    std::vector<int> unknown;
    for (const SizeTerm& term : form.terms) {
      for (const int symbol : term.symbols) {
        if (!known.contains(symbol)) unknown.push_back(symbol);
      }
    }
    return unknown;
  }

  // Checks that the shapes of a run will tell every symbol, one after the other.
  [[nodiscard]] Status check_told() const {
    std::set<int> known;
    for (bool found = true; found;) {
      found = false;
      for (const auto& [name, forms] : result_.inputs) {
        for (const SizeForm& form : forms) {
          const std::vector<int> unknown = unknown_of(form, known);
          if (unknown.size() == 1) found = known.insert(unknown[0]).second;
        }
      }
    }
    for (const auto& [name, forms] : result_.inputs) {
      for (size_t d = 0; d < forms.size(); ++d) {
        const std::vector<int> unknown = unknown_of(forms[d], known);
        if (unknown.empty()) continue;
        std::vector<std::string> names;
        for (const int i : std::set(unknown.begin(), unknown.end()))
          names.push_back(result_.symbols[static_cast<size_t>(i)].name);
        return invalid(
            "{}: dimension {} of input '{}' is a sum that does not tell {}, and no other input "
            "does: give '{}' a number (--shape {}=16)",
            file_, d, name, some_names(names), names[0], names[0]);
      }
    }
    return ok_status();
  }

  void note_unnamed() {
    for (const SizeSymbol& symbol : result_.symbols) {
      const bool is_other = std::any_of(equal_.begin(), equal_.end(), [&](const auto& entry) {
        return entry.second == symbol.name;
      });
      if (!is_symbol(symbol.name) && !is_other) result_.unnamed.insert(symbol.name);
    }
  }

  void say_taken() {
    if (taken_.empty()) return;
    std::string ranges;
    for (const std::string& name : taken_) {
      const DimRange& range = ranges_[name];
      ranges += fmt::format("{}{} {}..{}", ranges.empty() ? "" : ", ", name, range.min, range.max);
    }
    result_.taken =
        fmt::format("{}: open dimensions are {}{}{}", file_, ranges, advice(), made_up());
  }

  // Says which of the symbols that the rule decided only an option has, as a typing error would.
  [[nodiscard]] std::string made_up() const {
    std::set<std::string> given;
    for (const auto& [name, range] : options_.ranges) {
      for (const DimRange& dim : range) given.insert(dim.symbol);
    }
    std::vector<std::string> names;
    for (const std::string& name : taken_) {
      if (given.contains(name) && !file_symbols_.contains(name)) names.push_back(name);
    }
    if (names.empty()) return "";
    const std::vector<std::string> known(file_symbols_.begin(), file_symbols_.end());
    return fmt::format("; the file does not have {}{}{}{}", some_names(names),
                       known.empty() ? "" : ", its symbols are ", some_names(known),
                       did_you_mean(names[0], known));
  }

  // Returns how the first symbol that the rule decided gets more. If the importer has found that
  // the model is valid at no more of any of them, it is one size of the first that has several.
  [[nodiscard]] std::string advice() const {
    const ImportOptions usual;
    std::string one_size;
    for (const std::string& name : taken_) {
      const int64_t max = ranges_.at(name).max;
      const bool is_sequence =
          std::ranges::find(result_.sequences, name) != result_.sequences.end();
      const bool may_grow = max >= (is_sequence ? usual.most_sequence : usual.most_batch);
      const SizeSymbol other = {name, may_grow ? 1 : max, may_grow ? 2 * max : max};
      const std::string option = range_option(other, result_.symbols, result_.inputs);
      if (may_grow) return "; another range: " + option;
      if (one_size.empty() && max > 1) one_size = "; one size: " + option;
    }
    return one_size;
  }

  const ImportOptions& options_;
  const std::string& file_;
  std::vector<FileInput> inputs_;
  std::set<std::string> file_symbols_;
  std::map<std::string, std::string> equal_;  // symbols that are another one
  std::map<std::string, DimRange> ranges_;    // of symbols
  std::map<std::string, int64_t> steps_;      // in which symbols are counted
  std::map<std::string, int64_t> numbers_;    // of symbols that an input's shape decides
  std::vector<std::string> taken_;            // symbols that the rule decided
  std::set<std::string> used_;                // symbols that a dimension has
  OpenShapes result_;
};

}  // namespace

Result<OpenShapes> open_shapes(const onnx::GraphProto& graph, const ImportOptions& options,
                               const std::string& file) {
  return Resolver(graph, options, file).run();
}

}  // namespace hone::graph
