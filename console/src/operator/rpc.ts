import { Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { ActivityService } from "../../../gen/chorus/admin/v1/activity_pb.js";
import { AlertService } from "../../../gen/chorus/admin/v1/alerts_pb.js";
import { CreditService } from "../../../gen/chorus/admin/v1/credits_pb.js";
import { OperationsService } from "../../../gen/chorus/admin/v1/operations_pb.js";
import { WorkspaceService } from "../../../gen/chorus/admin/v1/workspaces_pb.js";
import { endSession } from "./session.ts";

/** Ends the session of the page when a call fails because the session has expired. */
const watchSession: Interceptor = (next) => async (request) => {
  try {
    return await next(request);
  } catch (error) {
    if (error instanceof ConnectError && error.code === Code.Unauthenticated) endSession();
    throw error;
  }
};

const transport = createConnectTransport({ baseUrl: "/console/operator/rpc", interceptors: [watchSession] });

/** The services of operators. An empty `workspace` stands for the alerts of the operators, over all workspaces. */
export const activity = createClient(ActivityService, transport);
export const alerts = createClient(AlertService, transport);
export const credits = createClient(CreditService, transport);
export const operations = createClient(OperationsService, transport);
export const workspaces = createClient(WorkspaceService, transport);
