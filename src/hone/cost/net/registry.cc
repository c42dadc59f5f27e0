#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "hone/base/options.h"
#include "hone/cost/inputs/model_inputs.h"
#include "hone/cost/net/family.h"
#include "hone/cost/net/layers.h"

namespace hone::cost::net {
namespace {

constexpr const Family* kFamilies[] = {&kAtformer, &kFasor, &kLstm,   &kMetatune, &kMha,
                                       &kMlp,      &kSmall, &kTabnet, &kTlp};

Status check(const FamilyOption& option, double value) {
  if (value >= option.lowest && value <= option.highest &&
      (!option.whole || value == std::floor(value)))
    return ok_status();
  return invalid("option {}={}: expected {} from {} to {}", option.name, value,
                 option.whole ? "a whole number" : "a number", option.lowest, option.highest);
}

}  // namespace

static_assert(kDevices.highest == kMaxHeads, "the input has a place for each head");

double Options::number(std::string_view name) const {
  const auto place = values_.find(name);
  HONE_ASSERT(place != values_.end(), "an option that the family does not list");
  return place->second;
}

int64_t Options::integer(std::string_view name) const { return static_cast<int64_t>(number(name)); }

std::span<const Family* const> families() { return kFamilies; }

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const Family* family : kFamilies) names.emplace_back(family->name);
  return names;
}

Result<const Family*> find_family(std::string_view name) {
  for (const Family* family : kFamilies) {
    if (family->name == name) return family;
  }
  return invalid("unknown family of nets '{}', expected one of {}", name,
                 fmt::join(family_names(), ", "));
}

Result<GivenOptions> complete_options(const Family& family, const GivenOptions& given) {
  GivenOptions values;
  std::vector<std::string_view> names;
  for (const FamilyOption& option : family.options) {
    values.emplace(option.name, option.value);
    names.push_back(option.name);
  }
  for (const auto& [name, value] : given) {
    const auto option =
        std::find_if(family.options.begin(), family.options.end(),
                     [&name = name](const FamilyOption& one) { return one.name == name; });
    if (option == family.options.end())
      return invalid("{} has no option '{}', expected one of {}", family.name, name,
                     fmt::join(names, ", "));
    HONE_RETURN_IF_ERROR(check(*option, value));
    values[name] = value;
  }
  const auto heads = values.find("heads"), hidden = values.find("hidden");
  if (heads != values.end() && hidden != values.end() &&
      std::fmod(hidden->second, heads->second) != 0)
    return invalid("{} heads do not divide hidden={}", heads->second, hidden->second);
  return values;
}

Result<Net> make_net(const Family& family, const NetInputs& inputs, const GivenOptions& given) {
  HONE_ASSIGN_OR_RETURN(GivenOptions values, complete_options(family, given));
  return family.make(inputs, Options(std::move(values)));
}

NetInputs all_inputs() {
  NetInputs inputs;
  for (const InputShape& shape : input_shapes()) inputs.push_back({shape.name, shape.dims});
  return inputs;
}

Result<GivenOptions> parse_options(const Family& family, std::string_view text) {
  std::vector<std::string_view> known;
  for (const FamilyOption& option : family.options) known.push_back(option.name);
  HONE_ASSIGN_OR_RETURN(const auto texts, parse_key_values(text, known));
  GivenOptions options;
  for (const FamilyOption& option : family.options) {
    const auto given = texts.find(std::string(option.name));
    if (given == texts.end()) continue;
    const Result<double> value = parse_real(given->second, option.lowest, option.highest);
    if (!value.ok()) return invalid("{}: {}", option.name, value.status().message());
    options.emplace(option.name, *value);
  }
  return options;
}

}  // namespace hone::cost::net
