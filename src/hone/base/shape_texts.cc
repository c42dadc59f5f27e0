#include "hone/base/shape_texts.h"

#include "hone/base/options.h"

namespace hone {
namespace {

constexpr int64_t kMostExtent = int64_t{1} << 40;

std::vector<std::string> parts_of(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t end = text.find(separator); end != std::string::npos;
       end = text.find(separator, begin)) {
    parts.push_back(text.substr(begin, end - begin));
    begin = end + separator.size();
  }
  parts.push_back(text.substr(begin));
  return parts;
}

bool is_symbol(const std::string& text) {
  constexpr std::string_view kFirst = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
  constexpr std::string_view kLater =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789.-";
  return !text.empty() && kFirst.find(text[0]) != std::string_view::npos &&
         text.find_first_not_of(kLater) == std::string::npos &&
         text.find("..") == std::string::npos;
}

Result<DimRange> parse_extent(const std::string& text) {
  if (is_symbol(text)) return DimRange{.symbol = text};
  const std::vector<std::string> ends = parts_of(text, "..");
  const auto problem = [&] {
    return invalid(
        "found the extent '{}', expected a number, a range such as 1..8, of which the largest size "
        "is at least 1, or a symbol",
        text);
  };
  if (ends.size() > 2) return problem();
  // A range may begin with 0, as of the past of a conversation.
  const auto low = parse_int(ends[0], ends.size() == 1 ? 1 : 0, kMostExtent);
  const auto high = parse_int(ends.back(), 1, kMostExtent);
  if (!low.ok() || !high.ok()) return problem();
  if (*low > *high)
    return invalid("the range {} has no number: its ends are reversed, expected {}..{}", text,
                   *high, *low);
  return DimRange{*low, *high, ""};
}

// Extents are separated by commas, or else by x.
Result<ShapeRange> parse_extents(const std::string& text) {
  ShapeRange range;
  for (const std::string& part : parts_of(text, text.find(',') == std::string::npos ? "x" : ",")) {
    HONE_ASSIGN_OR_RETURN(DimRange extent, parse_extent(part));
    range.push_back(std::move(extent));
  }
  return range;
}

}  // namespace

Status parse_shape_ranges(const std::vector<std::string>& texts, ModelOptions& options,
                          const std::string& option) {
  for (const std::string& text : texts) {
    HONE_ASSIGN_OR_RETURN(const auto pair, of_option(option, parse_key_value(text)));
    const auto& [name, extents] = pair;
    if (options.shapes.contains(name) || options.ranges.contains(name))
      return invalid("{}: '{}' is given twice", option, name);
    if (extents == "0") {  // a past without tokens
      options.shapes[name] = {0};
    } else if (extents.find_first_not_of("0123456789x,") == std::string::npos) {
      HONE_ASSIGN_OR_RETURN(options.shapes[name],
                            of_option(option + " " + name, parse_shape(extents)));
    } else {
      HONE_ASSIGN_OR_RETURN(options.ranges[name],
                            of_option(option + " " + name, parse_extents(extents)));
    }
  }
  return ok_status();
}

}  // namespace hone
