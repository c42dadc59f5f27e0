#include "run_file.h"

#include <algorithm>
#include <span>

#include "tuning_run.h"

namespace hone::tool {
namespace {

enum class Kind { kText, kNumber, kFlag, kList, kObject, kObjectOrNull };
struct Field {
  const char* name;
  Kind kind;
};

constexpr Field kRun[] = {{"of_database", Kind::kFlag},
                          {"name", Kind::kText},
                          {"model", Kind::kText},
                          {"device", Kind::kText},
                          {"threads", Kind::kNumber},
                          {"began", Kind::kNumber},
                          {"seconds", Kind::kNumber},
                          {"budget", Kind::kNumber},
                          {"trials", Kind::kNumber},
                          {"running", Kind::kFlag},
                          {"interrupted", Kind::kFlag},
                          {"model_seconds", Kind::kNumber},
                          {"untuned_model_seconds", Kind::kNumber},
                          {"kept_untuned", Kind::kFlag},
                          {"not_compared", Kind::kText},
                          {"spent", Kind::kObjectOrNull},
                          {"failures", Kind::kList},
                          {"roofline", Kind::kObjectOrNull},
                          {"notes", Kind::kList},
                          {"curve", Kind::kObject},
                          {"roles", Kind::kList},
                          {"kernels", Kind::kList}};
constexpr Field kKernel[] = {{"key", Kind::kText},
                             {"name", Kind::kText},
                             {"kernel", Kind::kText},
                             {"times", Kind::kNumber},
                             {"flops", Kind::kNumber},
                             {"bytes", Kind::kNumber},
                             {"limit_seconds", Kind::kNumber},
                             {"limit", Kind::kText},
                             {"source", Kind::kText},
                             {"from", Kind::kText},
                             {"seconds", Kind::kNumber},
                             {"measured", Kind::kFlag},
                             {"before_seconds", Kind::kNumber},
                             {"algorithm", Kind::kText},
                             {"trials", Kind::kNumber},
                             {"failed", Kind::kNumber},
                             {"points", Kind::kObject},
                             {"decisions", Kind::kList},
                             {"sizes", Kind::kList},
                             {"parts", Kind::kList},
                             {"steps", Kind::kText},
                             {"program", Kind::kText},
                             {"untuned_steps", Kind::kText},
                             {"untuned_program", Kind::kText}};
constexpr Field kDecision[] = {{"name", Kind::kText},
                               {"values", Kind::kNumber},
                               {"best", Kind::kText},
                               {"explained", Kind::kNumber},
                               {"other", Kind::kNumber}};
constexpr Field kSizes[] = {{"decided_by", Kind::kText},
                            {"calls", Kind::kNumber},
                            {"points", Kind::kList},
                            {"schedules", Kind::kList}};
constexpr Field kSizePoint[] = {{"value", Kind::kNumber}, {"run", Kind::kText}};
constexpr Field kSizeSchedule[] = {{"from", Kind::kNumber},
                                   {"most", Kind::kNumber},
                                   {"seconds", Kind::kList},
                                   {"measured", Kind::kList},
                                   {"steps", Kind::kText}};
constexpr Field kPart[] = {{"part", Kind::kText},
                           {"schedules", Kind::kNumber},
                           {"failed", Kind::kNumber},
                           {"seconds", Kind::kNumber},
                           {"largest", Kind::kNumber}};
constexpr Field kRole[] = {{"role", Kind::kText},
                           {"explained", Kind::kNumber},
                           {"other", Kind::kNumber},
                           {"kernels", Kind::kNumber}};
constexpr Field kFailure[] = {
    {"outcome", Kind::kText}, {"count", Kind::kNumber}, {"first", Kind::kText}};
constexpr Field kRoofline[] = {
    {"flops", Kind::kNumber}, {"levels", Kind::kList}, {"matrix", Kind::kList}};
constexpr Field kLevel[] = {{"name", Kind::kText}, {"bandwidth", Kind::kNumber}};
constexpr Field kMatrix[] = {{"type", Kind::kText}, {"flops", Kind::kNumber}};
constexpr Field kPoints[] = {{"at", Kind::kList}, {"trial", Kind::kList}, {"seconds", Kind::kList}};

bool is(const Json& value, Kind kind) {
  switch (kind) {
    case Kind::kText: return value.is_string();
    case Kind::kNumber: return value.is_number();
    case Kind::kFlag: return value.is_boolean();
    case Kind::kList: return value.is_array();
    case Kind::kObject: return value.is_object();
    case Kind::kObjectOrNull: return value.is_object() || value.is_null();
  }
  return false;
}

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::kText: return "a text";
    case Kind::kNumber: return "a number";
    case Kind::kFlag: return "true or false";
    case Kind::kList: return "a list";
    case Kind::kObject: return "an object";
    case Kind::kObjectOrNull: return "an object or null";
  }
  return "";
}

// `where` is the place of the object in the file, such as "kernels[3]."; empty for the whole.
Status check_fields(const Json& json, const std::string& where, std::span<const Field> fields) {
  if (!json.is_object())
    return invalid("{} is no object",
                   where.empty() ? "the file" : where.substr(0, where.size() - 1));
  for (const Field& field : fields) {
    const auto found = json.find(field.name);
    if (found == json.end()) return invalid("it has no {}{}", where, field.name);
    if (!is(*found, field.kind)) {
      return invalid("its {}{} is a value of type {}, expected {}", where, field.name,
                     found->type_name(), name_of(field.kind));
    }
  }
  return ok_status();
}

Status check_list(const Json& list, const std::string& name, std::span<const Field> fields) {
  for (size_t i = 0; i < list.size(); ++i)
    HONE_RETURN_IF_ERROR(check_fields(list[i], fmt::format("{}[{}].", name, i), fields));
  return ok_status();
}

Status check_points(const Json& points, const std::string& where) {
  HONE_RETURN_IF_ERROR(check_fields(points, where, kPoints));
  for (const Field& field : kPoints) {
    const Json& list = points[field.name];
    if (list.size() != points["at"].size())
      return invalid("its {}{} has {} numbers, expected {}", where, field.name, list.size(),
                     points["at"].size());
    for (const Json& value : list) {
      if (!value.is_number()) return invalid("its {}{} has more than numbers", where, field.name);
    }
  }
  return ok_status();
}

// A schedule has a time for each point.
Status check_size_times(const Json& schedule, size_t points, const std::string& where) {
  for (const auto& [name, kind] :
       {Field{"seconds", Kind::kNumber}, Field{"measured", Kind::kFlag}}) {
    const Json& list = schedule[name];
    if (list.size() != points)
      return invalid("its {}{} has {} values, expected {}", where, name, list.size(), points);
    for (const Json& value : list) {
      if (!is(value, kind))
        return invalid("its {}{} has a value of type {}, expected {}", where, name,
                       value.type_name(), name_of(kind));
    }
  }
  return ok_status();
}

Status check_sizes(const Json& tables, const std::string& where) {
  HONE_RETURN_IF_ERROR(check_list(tables, where, kSizes));
  for (size_t i = 0; i < tables.size(); ++i) {
    const std::string name = fmt::format("{}[{}].", where, i);
    const Json &points = tables[i]["points"], &schedules = tables[i]["schedules"];
    HONE_RETURN_IF_ERROR(check_list(points, name + "points", kSizePoint));
    HONE_RETURN_IF_ERROR(check_list(schedules, name + "schedules", kSizeSchedule));
    for (size_t s = 0; s < schedules.size(); ++s)
      HONE_RETURN_IF_ERROR(
          check_size_times(schedules[s], points.size(), fmt::format("{}schedules[{}].", name, s)));
  }
  return ok_status();
}

// Returns the FLOPs of a kernel's cheapest algorithm, in a file that does not say them: where they
// are what limits it, they follow from the limit.
double least_flops(const Json& kernel, const Json& roofline) {
  const double flops = kernel["flops"].get<double>();
  const bool follows = kernel["limit"] == "compute" && !roofline.is_null();
  return follows ? std::min(flops,
                            kernel["limit_seconds"].get<double>() * roofline["flops"].get<double>())
                 : flops;
}

// Files of older versions have no lists of sizes, no FLOPs of the cheapest algorithm, and no reason
// why limits are unknown.
void add_missing_fields(Json& run) {
  if (!run.contains("limits_unknown"))
    run["limits_unknown"] =
        run["roofline"].is_null() ? "The limits of the device were not known." : "";
  for (Json& kernel : run["kernels"]) {
    if (!kernel.is_object()) continue;
    for (const char* name : {"sizes", "parts"})
      if (!kernel.contains(name)) kernel[name] = Json::array();
  }
}

Status add_missing_flops(Json& run) {
  for (size_t i = 0; i < run["kernels"].size(); ++i) {
    Json& kernel = run["kernels"][i];
    const auto found = kernel.find("least_flops");
    if (found == kernel.end())
      kernel["least_flops"] = least_flops(kernel, run["roofline"]);
    else if (!found->is_number())
      return invalid("its kernels[{}].least_flops is a value of type {}, expected a number", i,
                     found->type_name());
  }
  return ok_status();
}

Status check_kernels(const Json& kernels) {
  HONE_RETURN_IF_ERROR(check_list(kernels, "kernels", kKernel));
  for (size_t i = 0; i < kernels.size(); ++i) {
    const std::string where = fmt::format("kernels[{}].", i);
    HONE_RETURN_IF_ERROR(check_points(kernels[i]["points"], where + "points."));
    HONE_RETURN_IF_ERROR(check_list(kernels[i]["decisions"], where + "decisions", kDecision));
    HONE_RETURN_IF_ERROR(check_sizes(kernels[i]["sizes"], where + "sizes"));
    HONE_RETURN_IF_ERROR(check_list(kernels[i]["parts"], where + "parts", kPart));
  }
  return ok_status();
}

Status check_run(Json& run) {
  if (!run.is_object() || !run.contains("format") || run["format"] != kRunFormat)
    return invalid("it is no run file, expected one that 'hone tune --report' wrote");
  if (!run.contains("version") || run["version"] != kRunVersion)
    return invalid("it has another version than {}: write it again with this version of hone",
                   kRunVersion);
  HONE_RETURN_IF_ERROR(check_fields(run, "", kRun));
  HONE_RETURN_IF_ERROR(check_list(run["failures"], "failures", kFailure));
  HONE_RETURN_IF_ERROR(check_list(run["roles"], "roles", kRole));
  HONE_RETURN_IF_ERROR(check_points(run["curve"], "curve."));
  for (const Json& note : run["notes"]) {
    if (!note.is_string()) return invalid("its notes are not only texts");
  }
  if (!run["spent"].is_null()) {
    for (const auto& [part, seconds] : run["spent"].items()) {
      if (!seconds.is_number()) return invalid("its spent.{} is no number", part);
    }
  }
  if (const Json& roofline = run["roofline"]; !roofline.is_null()) {
    HONE_RETURN_IF_ERROR(check_fields(roofline, "roofline.", kRoofline));
    HONE_RETURN_IF_ERROR(check_list(roofline["levels"], "roofline.levels", kLevel));
    HONE_RETURN_IF_ERROR(check_list(roofline["matrix"], "roofline.matrix", kMatrix));
  }
  add_missing_fields(run);
  if (!run["limits_unknown"].is_string()) return invalid("its limits_unknown is no text");
  HONE_RETURN_IF_ERROR(check_kernels(run["kernels"]));
  return add_missing_flops(run);
}

// What copies and prints JSON calls itself for values inside of values.
constexpr int kMostNested = 16;

bool is_nested_too_deeply(const std::string& text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') {
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == '[' || c == '{')) {
      if (++depth > kMostNested) return true;
    } else if (!quoted && (c == ']' || c == '}')) {
      --depth;
    }
  }
  return false;
}

}  // namespace

Result<Json> parse_run(const std::string& path, const std::string& text) {
  if (is_nested_too_deeply(text))
    return invalid(
        "{}: its values are nested too deeply, expected a file that 'hone tune --report' wrote",
        path);
  Json run;
  try {
    run = Json::parse(text);
  } catch (const Json::parse_error& e) {
    return invalid(
        "{}: byte {} is no JSON any more: the file was cut off or changed, expected one "
        "that 'hone tune --report' wrote",
        path, e.byte);
  } catch (const Json::exception& e) {  // a number out of the range of float64
    return invalid("{}: {}, expected a file that 'hone tune --report' wrote", path, e.what());
  }
  const Status status = check_run(run);
  if (!status.ok()) return invalid("{}: {}", path, status.message());
  return run;
}

}  // namespace hone::tool
