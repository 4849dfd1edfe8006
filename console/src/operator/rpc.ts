import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { ActivityService } from "../../../gen/chorus/admin/v1/activity_pb.js";
import { AlertService } from "../../../gen/chorus/admin/v1/alerts_pb.js";
import { CreditService } from "../../../gen/chorus/admin/v1/credits_pb.js";
import { OperationsService } from "../../../gen/chorus/admin/v1/operations_pb.js";
import { UsageService } from "../../../gen/chorus/admin/v1/usage_pb.js";
import { WorkspaceService } from "../../../gen/chorus/admin/v1/workspaces_pb.js";
import { watchSession } from "../session/watch-session.ts";
import { operators } from "./session.ts";

const transport = createConnectTransport({ baseUrl: "/console/operator/rpc", interceptors: [watchSession(operators)] });

/** The services of operators. An empty `workspace` stands for the alerts of the operators, over all workspaces. */
export const activity = createClient(ActivityService, transport);
export const alerts = createClient(AlertService, transport);
export const credits = createClient(CreditService, transport);
export const operations = createClient(OperationsService, transport);
export const usage = createClient(UsageService, transport);
export const workspaces = createClient(WorkspaceService, transport);
