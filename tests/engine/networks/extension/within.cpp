// Upper bounds of lines over the part of a box that costs at most a budget: what
// milp_recourse/engine/networks/linear_bounds.py:within computes, with the same memory and the same names.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace nb = nanobind;

constexpr double INF = std::numeric_limits<double>::infinity();
constexpr int THETAS = 6, LEVERS_EACH = 3;
constexpr double WORTH = 1.0 / 64.0;

struct Lever {
    double label, grid, factual, unit, shift, knots, down, fixed, linear, square, largest, least;
    double own_fixed, rate, square_rate, top_rate;
};
struct Interval { double lo, hi, mode; };
struct Column { double cost, top; };

struct Node {  // the arrays of the problem and of a search's memory that are read here
    const Lever* lever; const Interval* box; const Column* column; const std::int64_t* start;
    const std::uint8_t* allowed; const double *cut, *shares; const double* least_paid;
    int d; double cut_const, budget_slack, tiny;
};
struct Lines {
    double *constant, *spread, *top, *bound, *theta, *left, *fall, *right, *climb;
    double *tried, *gains, *pays, *here, *own; const double* terms; int count;
    const double* row(int c) const { return terms + static_cast<std::size_t>(c) * count; }
};

static double term(double linear, double square, double fall, double gain, double u) {
    double size = std::max(u, -fall * u);
    return linear * size + square * size * size - gain * u;
}

static double least_at(double linear, double square, double fall, double gain, double low, double high) {
    double excess = std::max(gain - linear, 0.0) + std::min(gain + fall * linear, 0.0);
    square *= excess < 0.0 ? fall * fall : 1.0;
    double t = square > 0.0 ? excess / (2.0 * square) : excess != 0.0 ? excess * INF : 0.0;
    return std::min(std::max(t, low), high);
}

static void at_thetas(const Node& p, Lines& w) {
    std::fill_n(w.gains, w.count, 0.0);
    std::fill_n(w.pays, w.count, 0.0);
    for (int i = 0; i < p.d; ++i) {
        const Lever& lever = p.lever[i];
        const std::int64_t s = p.start[i];
        const double share = p.shares[i];
        if (lever.label > 0.0) {
            std::fill_n(w.here, w.count, -INF);
            for (std::int64_t c = s; c < p.start[i + 1]; ++c) {
                if (!p.allowed[c]) continue;
                const double r = p.column[c].cost + share * p.column[c].top - p.cut[c];
                const double* line = w.row(static_cast<int>(c));
                for (int m = 0; m < w.count; ++m) {
                    const double v = line[m] - w.tried[m] * r;
                    if (v > w.here[m]) w.here[m] = v, w.own[m] = r;
                }
            }
            for (int m = 0; m < w.count; ++m) w.gains[m] += w.here[m], w.pays[m] += w.own[m];
        } else if (p.box[i].mode != 2) {
            const double linear = lever.linear + share * lever.largest, square = lever.square;
            const double fall = lever.down, cut = p.cut[s], fixed = lever.fixed + share * lever.least;
            const double low = p.box[i].lo, high = p.box[i].hi, rests = p.box[i].mode == 1 ? -INF : 0.0;
            const double* line = w.row(static_cast<int>(s));
            for (int m = 0; m < w.count; ++m) {
                const double a = w.tried[m], gain = line[m] + a * cut;
                const double t = least_at(a * linear, a * square, fall, gain, low, high);
                const double r = fixed + term(linear, square, fall, cut, t), v = line[m] * t - a * r;
                w.gains[m] += v <= rests ? 0.0 : v;
                w.pays[m] += v <= rests ? 0.0 : r;
            }
        }
    }
}

static void within(const Node& p, Lines& w, double budget, double least, double size) {
    const double limit = budget + p.cut_const;
    std::copy_n(w.top, w.count, w.bound);
    std::fill_n(w.theta, w.count, 0.0);
    if (limit <= least) return;
    std::fill_n(w.tried, w.count, 0.0);
    at_thetas(p, w);
    std::copy_n(w.top, w.count, w.left);
    std::copy_n(w.constant, w.count, w.right);
    for (int i = 0; i < p.d; ++i) {
        const Lever& lever = p.lever[i];
        double idle = p.least_paid[i];
        const double rise = lever.square, sink = lever.square * lever.down * lever.down;
        const double* line = w.row(static_cast<int>(p.start[i]));
        if (lever.label > 0.0) line = w.row(static_cast<int>(p.start[i] + std::int64_t(idle))), idle = 1.0;
        for (int m = 0; m < w.count; ++m) w.right[m] += idle * line[m];
        if (rise > 0.0 && p.box[i].mode != 2)
            for (int m = 0; m < w.count; ++m) {
                const double square = line[m] > 0.0 ? rise : sink;
                w.tried[m] += square > 0.0 ? line[m] * line[m] / square : 0.0;
            }
    }
    for (int m = 0; m < w.count; ++m) {
        w.fall[m] = limit - w.pays[m], w.climb[m] = limit - least;
        const double meet = std::max(w.left[m] - w.right[m], 0.0) / (w.climb[m] - std::min(w.fall[m], 0.0));
        const double free = w.tried[m] > 0.0 ? 0.5 * std::sqrt(w.tried[m] / w.climb[m]) : meet;
        w.tried[m] = w.fall[m] < 0.0 ? free : 0.0;
    }
    bool more = true;
    const int tries = std::min(std::max(p.d / LEVERS_EACH, 2), THETAS);
    for (int k = 0; more && k < tries;) {
        at_thetas(p, w);
        for (int m = 0; m < w.count; ++m) {
            const double here = w.gains[m] + w.tried[m] * limit + w.constant[m];
            const double room = w.spread[m] + w.tried[m] * (size + std::abs(limit));
            const double most = here + p.budget_slack * room + p.tiny;
            if (most < w.bound[m]) w.bound[m] = most, w.theta[m] = w.tried[m];
        }
        more = k++ == 0;
        if (k == tries) break;
        for (int m = 0; m < w.count; ++m) {
            const double slope = limit - w.pays[m], zero = w.gains[m] + w.tried[m] * w.pays[m] + w.constant[m];
            const bool falls = slope < 0.0;
            w.left[m] = falls ? zero : w.left[m], w.right[m] = falls ? w.right[m] : zero;
            w.fall[m] = falls ? slope : w.fall[m], w.climb[m] = falls ? w.climb[m] : slope;
            const double apart = std::max(w.left[m] - w.right[m], 0.0) / (w.climb[m] - w.fall[m]);
            w.tried[m] = w.fall[m] < 0.0 ? apart : 0.0;
        }
        for (int m = 0; m < w.count && k > 1; ++m)
            more |= (1.0 - WORTH) * w.bound[m] > std::max(w.left[m] + w.fall[m] * w.tried[m], 0.0);
    }
}

using Bytes = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Row = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Whole = nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// `rows`: const, spread, top, bound, theta, left, fall, right, climb, tried, gains, pays, here, own
void repeated(Bytes lever, Bytes box, Bytes column, Whole start, Bytes allowed, Row cut, Row shares, Row least_paid,
              Table rows, Table terms, double cut_const, double slack, double tiny, double budget, double least,
              double size, int repeats) {
    const Node p{reinterpret_cast<const Lever*>(lever.data()), reinterpret_cast<const Interval*>(box.data()),
                 reinterpret_cast<const Column*>(column.data()), start.data(), allowed.data(), cut.data(),
                 shares.data(), least_paid.data(), static_cast<int>(shares.size()), cut_const, slack, tiny};
    const int count = static_cast<int>(rows.shape(1));
    auto row = [&](int k) { return rows.data() + static_cast<std::size_t>(k) * count; };
    Lines w{row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7), row(8), row(9), row(10), row(11), row(12),
            row(13), terms.data(), count};
    for (int k = 0; k < repeats; ++k) within(p, w, budget, least, size);
}

NB_MODULE(prototype, m) { m.def("within", &repeated); }
