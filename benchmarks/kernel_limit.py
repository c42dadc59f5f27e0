"""The least time that a row of the kernels table could take on this machine, and what allows no less (docs/user/explain.md).

A roofline is what `hone devices --json` prints: peak rates in FLOP/s, bandwidths in bytes per second of each cache level and of memory,
by one core and by all. The bound is that of src/hone/trial/roofline.h, but for the level, which all copies in the row's model choose.
"""
import kernel_rows


def rate_of(one, whole, cores, threads):
    """What so many threads reach."""
    return max(one, whole) if threads >= cores else min(one * threads, max(one, whole))


def level_of(roofline, working_set, threads):
    """The closest cache that holds so many bytes, those of all busy cores together; memory if none does."""
    busy = min(threads, roofline["cores"])
    for level in roofline["levels"]:
        caches = -(-busy // level["shared_by"])
        if level["level"] > 0 and working_set <= level["bytes"] * caches:
            return level
    return roofline["levels"][-1]


def working_set(result):
    """The bytes among which a copy's own are found: the weights of all copies, and their data where copies stand side by side, each with its own.

    Where a reorder makes the data just before, as for pooling, it is near, however many copies there are.
    """
    others = result["weight_bytes"]
    if not result["chain"] and result["kind"] not in kernel_rows.WITH_REORDERS:
        others = result["bytes"]
    return result["bytes"] + (result["copies"] - 1) * others


def least_flops(report, copies):
    """Of a copy, by the algorithm that needs the fewest, as `hone compile --json` says; 0 without a report."""
    return sum(kernel["least_flops"] * kernel["times"] for kernel in report.get("kernels", [])) / copies


def limit(result, flops, roofline):
    """{"limit_seconds": of a copy, "limit": "compute", "L1" to "L3" or "memory"} of a row's result; `flops`: what least_flops() says, which may
    count products with zeros that this program was not told of.

    A peak rate that was measured with the row (peak_flops) is that of its instruction set and of the moment; without one the roofline's counts.
    """
    threads, cores = result["threads"], roofline["cores"]
    if result["flops"]:
        flops = min(flops, result["flops"] * kernel_rows.needed_share(result["key"]))
    peak = result["peak_flops"] or rate_of(roofline["flops_one"], roofline["flops_all"], cores, threads)
    level = level_of(roofline, working_set(result), threads)
    bandwidth = max(rate_of(level["read_one"], level["read_all"], cores, threads), rate_of(level["write_one"], level["write_all"], cores, threads))
    compute, moving = flops / peak, result["bytes"] / bandwidth
    if moving > compute:
        return {"limit_seconds": moving, "limit": f"L{level['level']}" if level["level"] else "memory"}
    return {"limit_seconds": compute, "limit": "compute"}
