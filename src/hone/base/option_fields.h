// base/option_fields.h - options that users type as "depth=6,rate=0.3" are described by a table
// over the fields of a plain struct: a row has the option's name, its meaning, its bounds and its
// field. Parsing, errors and help texts all come from the table. An option with names is typed as
// one of them, and its field is the name's index.
#pragma once

#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "hone/base/options.h"

namespace hone {

template <typename Options>
struct OptionField {
  std::string_view name, help;
  double low, high;  // both included
  std::variant<int Options::*, size_t Options::*, double Options::*> field;
  std::span<const std::string_view> names = {};
};

// Returns the index of a name.
inline Result<int64_t> parse_name(std::string_view text, std::span<const std::string_view> names) {
  const auto found = std::ranges::find(names, text);
  if (found == names.end())
    return invalid("found '{}', expected one of {}", text, fmt::join(names, ", "));
  return found - names.begin();
}

// Changes the fields that the text names. An error names the option and says what was expected.
template <typename Options>
Result<Options> parse_fields(std::string_view text, std::span<const OptionField<Options>> fields,
                             Options options) {
  std::vector<std::string_view> names;
  for (const OptionField<Options>& field : fields) names.push_back(field.name);
  HONE_ASSIGN_OR_RETURN(const auto given, parse_key_values(text, names));
  for (const OptionField<Options>& field : fields) {
    const auto found = given.find(std::string(field.name));
    if (found == given.end()) continue;
    const auto assign = [&]<typename Number>(Number Options::*member) -> Status {
      if constexpr (std::is_same_v<Number, double>) {
        HONE_ASSIGN_OR_RETURN(options.*member, parse_real(found->second, field.low, field.high));
      } else {
        HONE_ASSIGN_OR_RETURN(const int64_t number,
                              field.names.empty()
                                  ? parse_int(found->second, static_cast<int64_t>(field.low),
                                              static_cast<int64_t>(field.high))
                                  : parse_name(found->second, field.names));
        options.*member = static_cast<Number>(number);
      }
      return ok_status();
    };
    const Status status = std::visit(assign, field.field);
    if (!status.ok()) return invalid("{}: {}", field.name, status.message());
  }
  return options;
}

// Returns a line for each field with its value in `options`: "depth=6: levels of a tree".
template <typename Options>
std::vector<std::string> fields_help(std::span<const OptionField<Options>> fields,
                                     const Options& options) {
  std::vector<std::string> lines;
  for (const OptionField<Options>& field : fields) {
    const auto line = [&](const auto member) {
      if (!field.names.empty())
        return fmt::format("{}={}: {}: {}", field.name,
                           field.names[static_cast<size_t>(options.*member)], field.help,
                           fmt::join(field.names, ", "));
      return fmt::format("{}={}: {}", field.name, options.*member, field.help);
    };
    lines.push_back(std::visit(line, field.field));
  }
  return lines;
}

}  // namespace hone
