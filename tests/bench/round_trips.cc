#include "tests/bench/round_trips.h"

namespace quire::bench {

void AddRoundTrips(Report& report, const std::string& name, const RoundTrips& trips,
                   const RatioGoals& goals) {
  struct Point {
    const char* name;
    double share;
    std::optional<double> goal;
  };

  for (const Point& point : {Point{"p50", 0.5, goals.p50}, Point{"p99", 0.99, goals.p99}}) {
    const double quire = Quantile(trips.quire.wall, point.share);
    const double echo = Quantile(trips.echo.wall, point.share);
    const std::string prefix = name + "/" + point.name;
    report.Add({prefix, quire, "us", {}});
    report.Add({prefix + "/echo", echo, "us", {}});
    report.Add({prefix + "/to_echo", quire / echo, "x", point.goal});
  }
  report.Add({name + "/server_cpu", Median(trips.quire.server_cpu), "us", {}});
  report.Add({name + "/server_cpu/echo", Median(trips.echo.server_cpu), "us", {}});
  report.Add({name + "/client_cpu", Median(trips.quire.client_cpu), "us", {}});
  report.Add({name + "/client_cpu/echo", Median(trips.echo.client_cpu), "us", {}});
}

}  // namespace quire::bench
