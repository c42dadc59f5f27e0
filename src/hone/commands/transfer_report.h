// transfer_report.h - the report of hone/transfer.h on a graph that is imported already.
#pragma once

#include "hone/session/compile_options.h"
#include "hone/transfer.h"

namespace hone {

[[nodiscard]] Result<TransferReport> transfer_report(graph::Graph model,
                                                     const TransferReportOptions& options);

}  // namespace hone
