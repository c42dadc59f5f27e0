#include "hone/cost/net/meta.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "hone/base/named.h"
#include "hone/base/options.h"

namespace hone::cost::net {
namespace {

constexpr Named<Meta> kMetas[] = {{"none", Meta::kNone},
                                  {"maml", Meta::kMaml},
                                  {"fomaml", Meta::kFomaml},
                                  {"reptile", Meta::kReptile}};

constexpr MetaTraining kDefault;

constexpr FamilyOption kOptions[] = {
    {"steps", kDefault.steps, 1, 100, "steps of gradient descent that adapt to a task"},
    {"rate", kDefault.rate, 1e-6, 10, "learning rate of these steps", false},
    {"ways", kDefault.ways, 1, 1000, "tuning tasks that are adapted to at once"},
    {"shots", kDefault.shots, 1, 1000, "schedules of each that are adapted to"},
    {"queries", kDefault.queries, 1, 1000, "other schedules of each, whose loss counts"},
    {"tasks", kDefault.tasks, 1, 1000, "adaptations in a batch"},
    {"batches", kDefault.batches, 1, 100000, "batches in an epoch"},
    {"epochs", kDefault.epochs, 1, 100000, "most epochs, after those without meta-learning"},
    {"patience", kDefault.patience, 0, 100000,
     "epochs without a better one after which it stops; 0: never"},
    {"outer", kDefault.outer, 1e-9, 1, "learning rate of each batch", false},
    {"last", 0, 0, 1, "1: only the last layers learn and adapt"},
};

// Calls `visit` with the name and the member of each option. `meta` may be constant.
void for_each_member(auto& meta, const auto& visit) {
  visit("steps", meta.steps);
  visit("rate", meta.rate);
  visit("ways", meta.ways);
  visit("shots", meta.shots);
  visit("queries", meta.queries);
  visit("tasks", meta.tasks);
  visit("batches", meta.batches);
  visit("epochs", meta.epochs);
  visit("patience", meta.patience);
  visit("outer", meta.outer);
  visit("last", meta.last);
}

// Gives the member of that name the number.
void set(MetaTraining& meta, std::string_view name, double number) {
  for_each_member(meta, [&]<typename Member>(std::string_view known, Member& member) {
    if (known == name) member = static_cast<Member>(number);
  });
}

Status set_all(MetaTraining& meta, std::string_view text) {
  std::vector<std::string_view> known;
  for (const FamilyOption& option : kOptions) known.push_back(option.name);
  HONE_ASSIGN_OR_RETURN(const auto texts, parse_key_values(text, known));
  for (const FamilyOption& option : kOptions) {
    const auto given = texts.find(std::string(option.name));
    if (given == texts.end()) continue;
    HONE_ASSIGN_OR_RETURN(
        const double number,
        of_option(option.name, parse_real(given->second, option.lowest, option.highest)));
    if (option.whole && number != std::floor(number))
      return invalid("{}: '{}', expected a whole number", option.name, given->second);
    set(meta, option.name, number);
  }
  return ok_status();
}

}  // namespace

std::vector<std::string> meta_names() { return names_of(kMetas); }

std::span<const FamilyOption> meta_options() { return kOptions; }

Result<MetaTraining> parse_meta(std::string_view name, std::string_view own,
                                std::string_view options) {
  MetaTraining meta;
  const std::optional<Meta> kind = find_named(kMetas, name);
  if (!kind)
    return invalid("unknown meta-learning '{}', expected one of {}", name,
                   fmt::join(meta_names(), ", "));
  meta.kind = *kind;
  if (!meta.wanted() && !options.empty())
    return invalid("options '{}', but there is no meta-learning", options);
  HONE_RETURN_IF_ERROR(set_all(meta, own));
  HONE_RETURN_IF_ERROR(set_all(meta, options));
  return meta;
}

std::string format_options(const MetaTraining& meta) {
  std::vector<std::string> options;
  for_each_member(meta, [&](std::string_view name, const auto& member) {
    options.push_back(fmt::format("{}={}", name, +member));  // + prints a truth value as 0 or 1
  });
  return fmt::format("{}", fmt::join(options, ","));
}

Status check_tasks(const MetaTraining& meta, std::span<const int64_t> sizes, std::string_view what,
                   bool compares) {
  if (compares && std::min(meta.shots, meta.queries) < 2)
    return invalid(
        "shots={}, queries={}: the loss compares schedules of a task, expected 2 or more",
        meta.shots, meta.queries);
  const int64_t needed = int64_t{meta.shots} + meta.queries;
  const int64_t tasks =
      std::count_if(sizes.begin(), sizes.end(), [&](int64_t size) { return size >= needed; });
  const int64_t least = std::max(2, meta.ways);
  if (tasks >= least) return ok_status();
  const int64_t most = sizes.empty() ? 0 : *std::max_element(sizes.begin(), sizes.end());
  return invalid(
      "{} of {} {} have the {} schedules that shots={} and queries={} take, the largest has {}: "
      "expected {} such tasks or more",
      tasks, sizes.size(), what, needed, meta.shots, meta.queries, most, least);
}

}  // namespace hone::cost::net
