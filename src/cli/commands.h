// The commands, one file each. Each returns the exit code: 0 fine, 1 the plan does not fit; mistakes of the user are
// Errors.
#pragma once

#include "cli/arguments.h"
#include "cli/catalogs.h"

namespace berth {

int Inspect(const InspectArguments& arguments, const Catalogs& catalogs);
int MakePlan(const PlanArguments& arguments, const Catalogs& catalogs);
int Compare(const CompareArguments& arguments, const Catalogs& catalogs);
int TrainPlanner(const TrainArguments& arguments, const Catalogs& catalogs);
int Simulate(SimulateArguments arguments, const Catalogs& catalogs);
int ExplainPlan(const ExplainArguments& arguments, const Catalogs& catalogs);
int Check(const CheckArguments& arguments, const Catalogs& catalogs);
int ExportPlan(const ExportArguments& arguments, const Catalogs& catalogs);
int RunPlan(const RunArguments& arguments, const Catalogs& catalogs);
int MakeProfile(const ProfileArguments& arguments, const Catalogs& catalogs);
int Calibrate(const CalibrateArguments& arguments, const Catalogs& catalogs);
int Tune(const TuneArguments& arguments, const Catalogs& catalogs);
int DetectCluster(const DetectArguments& arguments);
int ShowCluster(const ClusterArguments& arguments, const Catalogs& catalogs);
int ListCatalog(const ListArguments& arguments, const Catalogs& catalogs);
int Demo(const Catalogs& catalogs);

}  // namespace berth
