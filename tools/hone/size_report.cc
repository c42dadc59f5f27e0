#include "size_report.h"

#include <fmt/ranges.h>

#include "hone/base/printable.h"

#include "table.h"

namespace hone::tool {
namespace {

std::string interval(const SizeTable::Row& row) {
  return row.from == row.most ? std::to_string(row.most)
                              : fmt::format("{}..{}", row.from, row.most);
}

std::string time_text(const SizeTable::Time& time) {
  return (time.measured ? "" : "~") + format_seconds(time.seconds);
}

// The sizes at which all schedules were measured, "none" if there are none.
std::string measured_text(const SizeTable& table) {
  std::vector<int64_t> values;
  for (size_t p = 0; p < table.points.size(); ++p)
    if (table.measured_at(p)) values.push_back(table.points[p].value);
  return values.empty() ? "none" : fmt::format("{}", fmt::join(values, ", "));
}

// The row that runs at a size.
const SizeTable::Row& row_at(const SizeTable& table, int64_t value) {
  for (const SizeTable::Row& row : table.rows)
    if (value <= row.most) return row;
  return table.rows.back();
}

// A letter for a schedule: A runs at the smallest sizes.
std::string letter(size_t row) { return std::string(1, static_cast<char>('A' + row)); }

std::string table_text(const SizeTable& table) {
  std::vector<std::string> header = {"schedule", printable(table.decided_by)};
  for (const SizeTable::Point& point : table.points)
    header.push_back(fmt::format("at {}", point.value));
  Table text(std::move(header), 2);
  for (size_t r = 0; r < table.rows.size(); ++r) {
    std::vector<std::string> row = {letter(r), interval(table.rows[r])};
    for (const SizeTable::Time& time : table.rows[r].times) row.push_back(time_text(time));
    text.add(std::move(row));
  }
  return text.text();
}

}  // namespace

std::string sizes_text(const TaskSummary& task) {
  std::string text;
  for (const SizeTable& table : task.sizes) {
    text += fmt::format(
        "sizes of {} call{}: {} decides which schedule runs; {} of {} compared "
        "sizes are measured (~: predicted)\n{}",
        table.calls, table.calls == 1 ? "" : "s", printable(table.decided_by),
        table.measured_points(), table.points.size(), table_text(table));
    for (const SizeTable::Point& point : table.points) {
      if (point.run == fmt::format("{}={}", table.decided_by, point.value)) continue;
      text += fmt::format("{} is {} with {}\n", printable(table.decided_by), point.value,
                          printable(point.run));
    }
    for (size_t r = 0; r + 1 < table.rows.size(); ++r)
      text += fmt::format("schedule {}:\n{}\n", letter(r), table.rows[r].steps);
    if (!table.rows.empty() && table.rows.back().steps != task.steps)
      text +=
          fmt::format("schedule {}:\n{}\n", letter(table.rows.size() - 1), table.rows.back().steps);
    text += '\n';
  }
  return text;
}

std::string sizes_table(std::span<const TaskSummary> tasks) {
  Table text({"task", "decided by", "schedules at", "measured at", "calls", "smallest", "largest"},
             4);
  bool any = false;
  for (size_t i = 0; i < tasks.size(); ++i) {
    for (const SizeTable& table : tasks[i].sizes) {
      any = true;
      std::vector<std::string> intervals;
      for (const SizeTable::Row& row : table.rows) intervals.push_back(interval(row));
      text.add({std::to_string(i + 1), printable(table.decided_by),
                fmt::format("{}", fmt::join(intervals, ", ")), measured_text(table),
                std::to_string(table.calls),
                time_text(row_at(table, table.points.front().value).times.front()),
                time_text(table.rows.back().times.back())});
    }
  }
  return any ? text.text() : "";
}

std::string sizes_line(std::span<const TaskSummary> tasks) {
  int kernels = 0, with_others = 0, measured = 0;
  for (const TaskSummary& task : tasks) {
    for (const SizeTable& table : task.sizes) {
      ++kernels;
      with_others += table.rows.size() > 1 ? 1 : 0;
      measured += table.measured_points() > 1 ? 1 : 0;
    }
  }
  if (kernels == 0) return "";
  return fmt::format(
      "{} of {} kernels that vary have other schedules for smaller sizes; measured "
      "times decided for {}, predictions for {}\n",
      with_others, kernels, measured, kernels - measured);
}

Json to_json(const SizeTable& table) {
  Json points = Json::array(), rows = Json::array();
  for (const SizeTable::Point& point : table.points)
    points.push_back({{"value", point.value}, {"run", point.run}});
  for (const SizeTable::Row& row : table.rows) {
    Json seconds = Json::array(), measured = Json::array();
    for (const SizeTable::Time& time : row.times) {
      seconds.push_back(time.seconds);
      measured.push_back(time.measured);
    }
    rows.push_back({{"from", row.from},
                    {"most", row.most},
                    {"seconds", std::move(seconds)},
                    {"measured", std::move(measured)},
                    {"steps", row.steps}});
  }
  return {{"decided_by", table.decided_by},
          {"calls", table.calls},
          {"points", std::move(points)},
          {"schedules", std::move(rows)}};
}

Json sizes_json(const TaskSummary& task) {
  Json list = Json::array();
  for (const SizeTable& table : task.sizes) list.push_back(to_json(table));
  return list;
}

}  // namespace hone::tool
