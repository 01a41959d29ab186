// Generated from api/openapi/control.json by `npm run generate`. Do not edit.
export interface paths {
    "/livez": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The process lives. Touches nothing else. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description alive */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The process can serve: its database answers, and it is not shutting down. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description ready */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description not ready */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/account/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Where you are signed in. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AccountSession"][];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        /** Ends all your sessions, this one too. */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SessionsEnded"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/account/sessions/{session_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Ends one of your sessions. */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    session_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SessionsEnded"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/action-workflows/{action_workflow_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Retires an action that no active config names any more. */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    action_workflow_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/plain": boolean;
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        /** Renames an action, or labels it. */
        patch: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    action_workflow_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["UpdateActionWorkflow"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ActionWorkflow"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        trace?: never;
    };
    "/v1/action-workflows/{action_workflow_id}/configs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Configures an action in a draft. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    action_workflow_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateActionWorkflowConfig"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ActionWorkflowConfig"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/action-workflows/{action_workflow_id}/latest-config": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The newest config of an action. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    action_workflow_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ActionWorkflowConfig"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/approvals": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Plans that wait for an answer, those that have waited longest first; with `answered`, those that were answered, newest first. */
        get: {
            parameters: {
                query?: {
                    /** @description name or id */
                    app?: string;
                    /** @description a selector of installs: `env=prod,tier!=dev` */
                    labels?: string;
                    /** @description name or id */
                    install?: string;
                    answered?: boolean;
                    /** @description `next` of the page before */
                    cursor?: string;
                    /** @description 100 by default, 500 at most */
                    limit?: number;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Approvals"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The apps of the org. */
        get: {
            parameters: {
                query?: {
                    q?: string;
                    offset?: number;
                    limit?: number;
                    page?: number;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["App"][];
                    };
                };
            };
        };
        put?: never;
        /** Makes an app. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateApp"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["App"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{app_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** An app, by name or id. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    app_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["App"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        /** Deletes an app that has no installs, with all its versions. */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    app_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/plain": boolean;
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        /** Changes an app: its name, what people read about it, and what clients keep with it. */
        patch: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    app_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["UpdateApp"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["App"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        trace?: never;
    };
    "/v1/apps/{app_id}/action-workflows": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The actions of an app, by name. */
        get: {
            parameters: {
                query?: {
                    q?: string;
                    offset?: number;
                    limit?: number;
                    page?: number;
                };
                header?: never;
                path: {
                    /** @description name or id */
                    app_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ActionWorkflow"][];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        /** Makes an action that no config names yet. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    app_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateActionWorkflow"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ActionWorkflow"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{app_id}/action-workflows/{action_workflow_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** An action of an app, by name or id. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    app_id: string;
                    /** @description name or id */
                    action_workflow_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ActionWorkflow"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{app_id}/break-glass-configs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    app_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateAppBreakGlassConfig"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AppBreakGlassConfig"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{app_id}/component/{component_name_or_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A component of an app, by name or id. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    app_id: string;
                    component_name_or_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Component"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{app_id}/components": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The components of an app, by name. */
        get: {
            parameters: {
                query?: {
                    q?: string;
                    offset?: number;
                    limit?: number;
                    page?: number;
                };
                header?: never;
                path: {
                    /** @description name or id */
                    app_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Component"][];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        /** Makes a component that no config names yet. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    app_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateComponent"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Component"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{app_id}/config": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Begins a draft. Its sections may arrive in any order; `PATCH` with the status `active` commits it. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    app_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateAppConfig"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AppConfig"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{app_id}/config/{app_config_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A config by its id or number; `recurse` shows its sections. */
        get: {
            parameters: {
                query?: {
                    recurse?: boolean;
                };
                header?: never;
                path: {
                    /** @description name or id */
                    app_id: string;
                    /** @description id, number, or `latest` */
                    app_config_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AppConfig"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /** Commits a draft (`active`), or abandons it (`error`). */
        patch: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    app_id: string;
                    app_config_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["UpdateAppConfig"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AppConfig"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        trace?: never;
    };
    "/v1/apps/{app_id}/config/{app_config_id}/diff": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What changed from another version to this one. Sensitive values are masked. */
        get: {
            parameters: {
                query: {
                    /** @description id or number of the other one */
                    against: string;
                };
                header?: never;
                path: {
                    /** @description name or id */
                    app_id: string;
                    /** @description id, number, or `latest` */
                    app_config_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": Record<string, never>[];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{app_id}/config/{app_config_id}/update-installs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Installs follow the active version by themselves; existing clients ask for it. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    app_id: string;
                    app_config_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["UpdateAppConfigInstalls"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Empty"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{app_id}/configs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** All versions and drafts, newest first. */
        get: {
            parameters: {
                query?: {
                    offset?: number;
                    limit?: number;
                    page?: number;
                };
                header?: never;
                path: {
                    /** @description name or id */
                    app_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AppConfig"][];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{app_id}/configs/{app_config_id}/build": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Builds what a config of an app needs and was not built yet. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    app_id: string;
                    app_config_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Build"][];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{app_id}/graph": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The components of an app and what they need; of its newest version, or of the one that is named. */
        get: {
            parameters: {
                query?: {
                    version?: number;
                };
                header?: never;
                path: {
                    /** @description name or id */
                    app_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ComponentGraph"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{app_id}/input-config": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    app_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateAppInputConfig"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AppInputConfig"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{app_id}/input-configs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: {
            parameters: {
                query?: {
                    offset?: number;
                    limit?: number;
                    page?: number;
                };
                header?: never;
                path: {
                    /** @description name or id */
                    app_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AppInputConfig"][];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{app_id}/input-latest-config": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    app_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AppInputConfig"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{app_id}/installs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The installs of an app. */
        get: {
            parameters: {
                query?: {
                    q?: string;
                    /** @description a selector: `env=prod,tier!=dev,team,!old` */
                    labels?: string;
                    offset?: number;
                    limit?: number;
                    page?: number;
                };
                header?: never;
                path: {
                    /** @description name or id */
                    app_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Install"][];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        /** Makes an install of an app, with its runner. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    app_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateInstall"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Install"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{app_id}/latest-config": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The active version; before the first one, the newest draft. */
        get: {
            parameters: {
                query?: {
                    recurse?: boolean;
                };
                header?: never;
                path: {
                    /** @description name or id */
                    app_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AppConfig"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{app_id}/latest-policies-config": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    app_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AppPoliciesConfig"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{app_id}/operation-role-configs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    app_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateAppOperationRoleConfig"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AppOperationRoleConfig"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{app_id}/permissions-configs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Puts the roles into a draft, in place of those before; break-glass roles among them are a section of their own. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    app_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateAppPermissionsConfig"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AppPermissionsConfig"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{app_id}/policies-configs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    app_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateAppPoliciesConfig"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AppPoliciesConfig"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{app_id}/runner-configs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: {
            parameters: {
                query?: {
                    offset?: number;
                    limit?: number;
                    page?: number;
                };
                header?: never;
                path: {
                    /** @description name or id */
                    app_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AppRunnerConfig"][];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    app_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateAppRunnerConfig"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AppRunnerConfig"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{app_id}/runner-latest-config": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    app_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AppRunnerConfig"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{app_id}/sandbox-config": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    app_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateAppSandboxConfig"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AppSandboxConfig"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{app_id}/sandbox-configs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: {
            parameters: {
                query?: {
                    offset?: number;
                    limit?: number;
                    page?: number;
                };
                header?: never;
                path: {
                    /** @description name or id */
                    app_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AppSandboxConfig"][];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{app_id}/sandbox-latest-config": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    app_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AppSandboxConfig"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{app_id}/secret": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Sets a variable of an app: templates of all installs see it as `.nuon.app.variables.NAME`. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    app_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateAppVariable"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AppVariable"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{app_id}/secret/{secret_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Deletes a variable of an app, by name or id. */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    app_id: string;
                    /** @description name or id */
                    secret_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/plain": boolean;
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{app_id}/secrets": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The variables of an app, without their values. The dialect calls them secrets. */
        get: {
            parameters: {
                query?: {
                    offset?: number;
                    limit?: number;
                    page?: number;
                };
                header?: never;
                path: {
                    /** @description name or id */
                    app_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AppVariable"][];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{app_id}/secrets-configs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    app_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateAppSecretsConfig"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AppSecretsConfig"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{app_id}/stack-configs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    app_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateAppStackConfig"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AppStackConfig"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/apps/{app_id}/sync": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Syncs a whole app: validates it, and makes it the active version. Equal content makes no new one. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    app_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["SyncApp"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SyncedApp"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/archives/{digest}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Whether an archive is here, so that it need not be uploaded again. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description `sha256:` and 64 hexadecimal characters */
                    digest: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Archive"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        /** Uploads a source archive (tar), named by its SHA-256. */
        put: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description `sha256:` and 64 hexadecimal characters */
                    digest: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/octet-stream": number[];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Archive"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/attention": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What needs a person, the worst first: unknown outcomes, plans that wait, failures, runners that are away, drift, ill health, failed builds. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Attention"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Events of the org with names in place of ids, newest first; `format=csv` downloads them. */
        get: {
            parameters: {
                query?: {
                    /** @description name or id */
                    install?: string;
                    /** @description a kind of event, like `job.state`, or a family, like `job` */
                    kind?: string;
                    /** @description address or id of an account */
                    actor?: string;
                    /** @description part of the event's document */
                    q?: string;
                    /** @description RFC 3339 */
                    from?: string;
                    /** @description RFC 3339 */
                    to?: string;
                    /** @description `next` of the page before */
                    cursor?: string;
                    limit?: number;
                    /** @description json or csv */
                    format?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AuditPage"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/builds": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Builds, newest first: of an app, of a component, or of all. */
        get: {
            parameters: {
                query?: {
                    /** @description name or id */
                    app_id?: string;
                    /** @description name or id */
                    component_id?: string;
                    offset?: number;
                    limit?: number;
                    page?: number;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Build"][];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/builds/{build_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A build, by its id alone. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    build_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Build"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/builds/{build_id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Cancels a build that has not ended. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    build_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Build"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/components": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The components of all apps of the org, by name. */
        get: {
            parameters: {
                query?: {
                    q?: string;
                    offset?: number;
                    limit?: number;
                    page?: number;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Component"][];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/components/{component_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A component, by id, or by a name that only one app has. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    component_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Component"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        /** Retires a component that no active config names any more. */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    component_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/plain": boolean;
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        /** Changes what is known of a component beside its configs. */
        patch: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    component_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["UpdateComponent"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Component"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        trace?: never;
    };
    "/v1/components/{component_id}/builds": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Builds a component of the active config. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    component_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateBuild"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Build"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/components/{component_id}/builds/current": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The newest good build of a component as the active config has it: what installs get. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    component_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Build"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/components/{component_id}/builds/latest": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The newest build of a component. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    component_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Build"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/components/{component_id}/builds/{build_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A build of a component. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    component_id: string;
                    build_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Build"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/components/{component_id}/configs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The configs of a component, newest first. */
        get: {
            parameters: {
                query?: {
                    offset?: number;
                    limit?: number;
                    page?: number;
                };
                header?: never;
                path: {
                    /** @description name or id */
                    component_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ComponentConfigConnection"][];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/components/{component_id}/configs/docker-build": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    component_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateDockerBuild"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["DockerBuild"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/components/{component_id}/configs/external-image": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    component_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateExternalImage"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ExternalImage"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/components/{component_id}/configs/helm": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    component_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateHelmChart"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["HelmChart"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/components/{component_id}/configs/job": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    component_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateJob"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["JobConfig"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/components/{component_id}/configs/kubernetes-manifest": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    component_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateKubernetesManifest"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["KubernetesManifest"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/components/{component_id}/configs/latest": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The newest config of a component. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    component_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ComponentConfigConnection"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/components/{component_id}/configs/pulumi": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    component_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreatePulumi"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Pulumi"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/components/{component_id}/configs/terraform-module": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    component_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateTerraformModule"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["TerraformModule"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Events of the org: JSON (the latest, or those after one that is known), or with `Accept: text/event-stream` live (from now on, unless told where to go on). */
        get: {
            parameters: {
                query?: {
                    /** @description id of the last event that is known */
                    after?: string;
                    /** @description the latest events before the one with this id */
                    before?: string;
                    /** @description one kind of events, like `job.state`, or a family, like `job` */
                    kind?: string;
                    limit?: number;
                };
                header?: {
                    "Last-Event-ID"?: string | null;
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Event"][];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/fleet": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Installs as flat rows: filtered, sorted and counted by the server. */
        get: {
            parameters: {
                query?: {
                    /** @description part of a name, or an id */
                    q?: string;
                    /** @description a selector: `env=prod,tier!=dev,team,!old` */
                    labels?: string;
                    /** @description names or ids, with commas between them */
                    app?: string;
                    /** @description active, inactive, pending, error or unknown */
                    status?: string;
                    /** @description drifted, none, or never-looked where a look is missing or failed */
                    drift?: string;
                    /** @description pending, active, offline or disabled */
                    runner?: string;
                    /** @description healthy, progressing, degraded, unhealthy, unknown, or unset where nothing is observed */
                    health?: string;
                    /** @description a version of the app, `outdated`, or `none` */
                    version?: string;
                    /** @description aws, azure, gcp or local */
                    platform?: string;
                    /** @description name, changed, status, version, drift, runner, health or app */
                    sort?: string;
                    /** @description asc or desc */
                    order?: string;
                    /** @description `next` of the page before */
                    cursor?: string;
                    /** @description 100 by default, 500 at most */
                    limit?: number;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Fleet"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/frame": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The frame of every page: the org, the role in it, plans that wait, the build runner. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["OrgFrame"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/general/cli-config": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What a CLI needs to know before it signs in. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["CliConfig"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/general/config-schema": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The JSON Schema of a file of the app format, for editors: `#:schema URL/v1/general/config-schema?type=helm`. */
        get: {
            parameters: {
                query?: {
                    /** @description kind of file; `full` is the whole app */
                    type?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": Record<string, never>;
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/general/current-user": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The account of the token. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Account"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The installs of the org. */
        get: {
            parameters: {
                query?: {
                    q?: string;
                    /** @description a selector: `env=prod,tier!=dev,team,!old` */
                    labels?: string;
                    offset?: number;
                    limit?: number;
                    page?: number;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Install"][];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** How many of the org's installs are how well. */
        get: {
            parameters: {
                query?: {
                    q?: string;
                    /** @description a selector: `env=prod,tier!=dev,team,!old` */
                    labels?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["FleetHealth"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** An install, by name or id. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Install"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /** Changes the name of an install, its approvals, its labels, who keeps it, and components that may be left out. */
        patch: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["UpdateInstall"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Install"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        trace?: never;
    };
    "/v1/installs/{install_id}/action-runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Runs an action that carries its steps in the request. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateActionRun"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Job"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/action-workflows": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The actions that an install can run: those of the config that it is at. */
        get: {
            parameters: {
                query?: {
                    q?: string;
                    offset?: number;
                    limit?: number;
                    page?: number;
                };
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["InstallActionWorkflow"][];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/action-workflows/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Runs an action of the app on an install. Its templates are rendered against what is known of the install now. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateActionWorkflowRun"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["WorkflowStarted"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/action-workflows/runs/{run_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A run of an action, with its job; by its own id, or by that of its workflow. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                    run_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ActionRun"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/action-workflows/{action_workflow_id}/recent-runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** An action on an install, with its latest runs. */
        get: {
            parameters: {
                query?: {
                    offset?: number;
                    limit?: number;
                    page?: number;
                };
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                    /** @description name or id */
                    action_workflow_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["InstallActionWorkflow"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/artifact-syncs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Copies the artifact of a build into the install's own registry, or sees that it is there to be read. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["SyncArtifact"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Job"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/components": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The components of an install's app, each as it is there. */
        get: {
            parameters: {
                query?: {
                    q?: string;
                    offset?: number;
                    limit?: number;
                    page?: number;
                };
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["InstallComponent"][];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/components/deploy-all": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Deploys all components of an install. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["DeployAll"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["WorkflowStarted"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/components/teardown-all": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Tears all components of an install down; the sandbox stays. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["DeployAll"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["WorkflowStarted"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/components/{component_id}/outputs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What a component has put out on an install. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                    /** @description name or id */
                    component_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": unknown;
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/components/{component_id}/teardown": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Tears one component of an install down. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                    /** @description name or id */
                    component_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["DeployAll"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["WorkflowStarted"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/components/{component_id}/toggle": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Switches a component of an install on or off, and starts what deploys it or tears it down. The workflow's id is empty where
         *     there is nothing to do yet.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                    /** @description name or id */
                    component_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["ToggleInstallComponent"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["WorkflowStarted"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/components/{component}/health/checks/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Takes what a check has found out about a component. It can only make the component look worse. */
        put: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                    component: string;
                    name: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["PushHealthCheck"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["InstallHealth"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        post?: never;
        /** Forgets a check of a component, as if it had never been pushed. */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                    component: string;
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["InstallHealth"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/configs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Says what an install shall say about itself. It is there already; what is absent stays. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["UpdateInstallConfig"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["InstallConfig"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/configs/{config_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /** Changes what an install says about itself. */
        patch: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                    config_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["UpdateInstallConfig"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["InstallConfig"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        trace?: never;
    };
    "/v1/installs/{install_id}/deploys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Deploys of an install, newest first. */
        get: {
            parameters: {
                query?: {
                    offset?: number;
                    limit?: number;
                    page?: number;
                };
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["InstallDeploy"][];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        /** Deploys a build of a component: as the config said that it was built from. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateInstallDeploy"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["InstallDeploy"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/deploys/{deploy_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A deploy. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                    deploy_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["InstallDeploy"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/deprovision": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Tears everything of an install down, components first. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["DeployAll"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["WorkflowStarted"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/deprovision-sandbox": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Tears an install's sandbox down. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["DeployAll"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["WorkflowStarted"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/drift": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The last look for drift at every part of an install. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["InstallDrift"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/forget": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Forgets an install: it is removed here, and its runner can't connect any more. What it has made in the customer's account stays there. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["ForgetInstall"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": unknown;
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/generate-cli-install-config": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** An install as a file, which `ferry installs sync` takes. Sensitive inputs are left out. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/octet-stream": number[];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/graph": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The components of an install and what they need, laid out in columns and rows. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ComponentGraph"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** How well the components of an install are. */
        get: {
            parameters: {
                query?: {
                    /** @description days of history, 90 at most and by default */
                    days?: number;
                };
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["InstallHealth"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/health/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Verdicts that became others, the newest first. They are kept for 90 days. */
        get: {
            parameters: {
                query?: {
                    component?: string;
                    /** @description since when, as RFC 3339 */
                    from?: string;
                    offset?: number;
                    limit?: number;
                    page?: number;
                };
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["HealthTransition"][];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/inputs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The versions of an install's inputs, newest first. */
        get: {
            parameters: {
                query?: {
                    offset?: number;
                    limit?: number;
                    page?: number;
                };
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["InstallInputs"][];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /** Changes inputs of an install: those that are named, the others stay. An empty value takes the app's default again. */
        patch: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["UpdateInstallInputs"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["InstallInputs"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        trace?: never;
    };
    "/v1/installs/{install_id}/inputs/current": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The inputs of an install as they are now. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["InstallInputs"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/labels": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Adds labels to an install; those that it has already get the new value. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["AddInstallLabels"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Install"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        /** Removes labels of an install's own. Those of the app stay; what is not there is gone already. */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["RemoveInstallLabels"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Install"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/overview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The first page of an install: how it stands, its parts, what was done to it, and what may be done. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["InstallOverview"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/phone-home/{phone_home_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** A stack tells that it was applied, and what came of it. Its unguessable id is the proof. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    install_id: string;
                    phone_home_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": unknown;
                };
            };
            responses: {
                /** @description a deleted stack needs nothing */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": unknown;
                    };
                };
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": unknown;
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/policy-reports": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What policies said about the plans of an install, newest first. */
        get: {
            parameters: {
                query?: {
                    offset?: number;
                    limit?: number;
                    page?: number;
                };
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["PolicyReport"][];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/readme": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The README of the app with the values of this install, as blocks. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Readme"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/render": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What a component or an action would receive on an install. Sensitive values are masked. */
        get: {
            parameters: {
                query?: {
                    /** @description name of a component */
                    component?: string;
                    /** @description name of an action */
                    action?: string;
                };
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Rendered"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/reprovision": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Provisions an install anew: stack, sandbox, components. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["DeployAll"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["WorkflowStarted"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/reprovision-sandbox": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Plans and applies an install's sandbox anew, then all components. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["DeployAll"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["WorkflowStarted"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/runbook-runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Runs of runbooks on an install, newest first. */
        get: {
            parameters: {
                query?: {
                    runbook_id?: string;
                    offset?: number;
                    limit?: number;
                    page?: number;
                };
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["InstallRunbookRun"][];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/runbook-runs/{run_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A run of a runbook on an install. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                    run_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["InstallRunbookRun"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/runbooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The runbooks that can be run on an install: those of the config that it is at. */
        get: {
            parameters: {
                query?: {
                    offset?: number;
                    limit?: number;
                    page?: number;
                };
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["InstallRunbook"][];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/runbooks/{runbook_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A runbook on an install, with what it asks for, by name or id. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                    /** @description name or id */
                    runbook_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["InstallRunbook"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/runbooks/{runbook_id}/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Runs a runbook on an install. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                    /** @description name or id */
                    runbook_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateRunbookRun"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["InstallRunbookRun"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/sandbox-runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Runs of an install's sandbox, newest first. */
        get: {
            parameters: {
                query?: {
                    offset?: number;
                    limit?: number;
                    page?: number;
                };
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["InstallSandboxRun"][];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/sandbox-runs/{run_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A run of an install's sandbox. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                    run_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["InstallSandboxRun"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/schedules": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What an install does by the clock, and what became of the last ticks. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["InstallSchedule"][];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/stack": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The stack of an install, every version of it, newest first. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["InstallStack"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/state": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The state of an install, as its templates see it; with `version`, what was deployed then. */
        get: {
            parameters: {
                query?: {
                    version?: number;
                };
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["InstallState"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/state/diff": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** How two versions of an install's state differ; without versions, the newest from the one before. */
        get: {
            parameters: {
                query?: {
                    from?: number;
                    to?: number;
                };
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["StateDiff"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/state/versions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The versions of an install's state, newest first, each with what changed. */
        get: {
            parameters: {
                query?: {
                    offset?: number;
                    limit?: number;
                    page?: number;
                };
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["InstallStateVersion"][];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/terraform-workspaces": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Terraform's workspaces of an install: the sandbox's and one for each component that is a Terraform module. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["TerraformWorkspace"][];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/installs/{install_id}/workflows": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Workflows of an install, newest first. */
        get: {
            parameters: {
                query?: {
                    type?: string;
                    offset?: number;
                    limit?: number;
                    page?: number;
                };
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Workflow"][];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        /** Starts a workflow on an install. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    install_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateWorkflow"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["WorkflowStarted"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/live": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What has changed in the org (`note`), new lines of one log (`log`), and every 10 s a `beat`; `reset` says that too much was missed to tell it.
         *     Ids are positions: a client that comes back with `Last-Event-ID` misses nothing.
         */
        get: {
            parameters: {
                query?: {
                    /** @description the org, where no header can be sent */
                    org_id?: string;
                    /** @description id of the last event that is known */
                    after?: string;
                    /** @description a log stream */
                    log?: string;
                    /** @description number of its last line that is known */
                    log_after?: number;
                };
                header?: {
                    "Last-Event-ID"?: string | null;
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/event-stream": components["schemas"]["LiveNote"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/log-streams/{log_stream_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A log stream: whether more may come. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    log_stream_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["LogStream"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        /** Deletes the log of a job that has ended, or the telemetry of a runner, for good. */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    log_stream_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["LogStream"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/log-streams/{log_stream_id}/lines": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lines of a log by their numbers, from 1. */
        get: {
            parameters: {
                query?: {
                    /** @description number of the first line; 1 when absent */
                    from?: number;
                    /** @description 200 by default, 2,000 at most */
                    count?: number;
                };
                header?: never;
                path: {
                    log_stream_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["LogLines"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/log-streams/{log_stream_id}/logs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Log records, 100 a page: `X-Nuon-API-Offset` says where to go on, `X-Nuon-API-Next` where the next page starts; a page of a search may
         *     hold fewer, or none, and still have a next one. `format=ndjson` is all records in one answer, `format=text` readable text, `format=raw`
         *     the bytes themselves (of one `pipe`, or of stdout and stderr in their order). Records and text are lossy UTF-8; only raw is exact.
         */
        get: {
            parameters: {
                query?: {
                    /** @description asc or desc */
                    order?: string;
                    /** @description json, ndjson, text or raw */
                    format?: string;
                    /** @description compress what is downloaded; for ndjson, text and raw */
                    gzip?: boolean;
                    /** @description stdout, stderr or system; of telemetry logs, traces or metrics */
                    pipe?: string;
                    /** @description name of a step */
                    step?: string;
                    /** @description at least this: trace, debug, info, warn, error or fatal */
                    level?: string;
                    /** @description RFC 3339 */
                    since?: string;
                    /** @description RFC 3339 */
                    until?: string;
                    /** @description position of a chunk, as the tail tells it (`1.42`) */
                    from?: string;
                    /** @description only lines with this text */
                    grep?: string;
                    /** @description only lines that match */
                    regex?: string;
                };
                header?: {
                    /** @description nanoseconds */
                    "X-Nuon-API-Offset"?: string | null;
                };
                path: {
                    log_stream_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["LogRecord"][];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/log-streams/{log_stream_id}/matches": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The numbers of the lines that a text, or a regular expression (`regex=true`), is found in; case does not matter. `level=error` takes
         *     only what was printed to stderr.
         */
        get: {
            parameters: {
                query: {
                    q: string;
                    regex?: boolean;
                    /** @description `error` */
                    level?: string;
                };
                header?: never;
                path: {
                    log_stream_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["LogMatches"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/log-streams/{log_stream_id}/outline": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What a log consists of: how many lines, its steps, gaps, and lines that look like failures. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    log_stream_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["LogOutline"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/log-streams/{log_stream_id}/tail": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The log as it grows: what is there, then what comes, without a seam; `chunk` events, then one `end` with the job's status. It takes the filters of the log; then a chunk has only the lines that are wanted. */
        get: {
            parameters: {
                query?: {
                    /** @description position of the last chunk that is known */
                    after?: string;
                    pipe?: string;
                    step?: string;
                    level?: string;
                    since?: string;
                    until?: string;
                    grep?: string;
                    regex?: string;
                };
                header?: {
                    "Last-Event-ID"?: string | null;
                };
                path: {
                    log_stream_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/event-stream": components["schemas"]["LogChunk"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/members": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Everybody who belongs to the org. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["OrgMember"][];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/members/{account_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Removes a member, with the person's sessions and tokens for this org. The last admin stays. */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    account_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["MemberRemoved"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        /** Gives a member another role. The last admin stays one. */
        patch: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    account_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["UpdateMember"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["OrgMember"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        trace?: never;
    };
    "/v1/orgs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The orgs of this account. */
        get: {
            parameters: {
                query?: {
                    offset?: number;
                    limit?: number;
                    page?: number;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Org"][];
                    };
                };
            };
        };
        put?: never;
        /** Makes an org, with its build runner; the account becomes its admin. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateOrg"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Org"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/orgs/current": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The org that the request names. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Org"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/orgs/current/invites": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Invites of the org, the newest first. */
        get: {
            parameters: {
                query?: {
                    offset?: number;
                    limit?: number;
                    page?: number;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["OrgInvite"][];
                    };
                };
            };
        };
        put?: never;
        /** Invites somebody by e-mail address. The answer has the link, which is good for seven days, and is nowhere else. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateOrgInvite"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["OrgInvite"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/orgs/current/invites/{invite_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Revokes an invite; who has accepted it stays. */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    invite_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["OrgInvite"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/orgs/current/logs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What the org keeps of its logs, and what they take. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["LogKeeping"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /** Changes what the org keeps of its logs. What is older is deleted within a minute, for good. */
        patch: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["UpdateLogKeeping"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["LogKeeping"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        trace?: never;
    };
    "/v1/runner-jobs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The jobs of the org, newest first. */
        get: {
            parameters: {
                query?: {
                    /** @description name or id */
                    install?: string;
                    /** @description name or id */
                    runner?: string;
                    status?: components["schemas"]["JobState"];
                    type?: components["schemas"]["JobType"];
                    /** @description all types but this one */
                    without?: components["schemas"]["JobType"];
                    offset?: number;
                    limit?: number;
                    page?: number;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Job"][];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runner-jobs/{runner_job_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A job with its executions, steps and outputs. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    runner_job_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Job"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runner-jobs/{runner_job_id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Cancels a job. One that runs ends when its runner has interrupted it; asking twice is harmless. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    runner_job_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Job"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runner-jobs/{runner_job_id}/plan": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What a job's plan would change, as text. Only jobs that plan have one. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    runner_job_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/plain": string;
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runner-jobs/{runner_job_id}/settle": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Records the outcome of a job whose result is unknown, after someone has looked. An apply is finished only if it saved its state. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    runner_job_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["SettleJob"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Job"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runners": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The runners of the org, or of one install. */
        get: {
            parameters: {
                query?: {
                    /** @description name or id */
                    install?: string;
                    offset?: number;
                    limit?: number;
                    page?: number;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Runner"][];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runners/{runner_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A runner, by name or id. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    runner_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Runner"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runners/{runner_id}/drain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Lets a runner finish what it has and take nothing more. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    runner_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Runner"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runners/{runner_id}/jobs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Gives a runner a job that does nothing, or a health check. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    runner_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateRunnerJob"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Job"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runners/{runner_id}/join-commands": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Makes a join credential, and the command that brings a runner up with it. The credential is shown once. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    runner_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["JoinCommand"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runners/{runner_id}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Lets a drained runner take jobs again. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    runner_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Runner"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runners/{runner_id}/revoke": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Ends a runner's session and all its join credentials. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    runner_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Runner"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runners/{runner_id}/settings": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What a runner is set to. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    runner_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RunnerSettings"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /** Changes settings; the runner has them with its next answer, without a restart. */
        patch: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name or id */
                    runner_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["UpdateRunnerSettings"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Runner"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        trace?: never;
    };
    "/v1/search": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Things of the org by a part of their name, or by id: installs, apps, components, actions, runners, workflows, jobs. */
        get: {
            parameters: {
                query: {
                    q: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SearchResults"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/session": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Who is signed in, with the orgs and the role in each. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["CurrentSession"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sign-in-links": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Makes a link that signs one browser in as you, once, within an hour. A token that is good for one org alone can't make one. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SignInLink"];
                    };
                };
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/source-logins": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The logins that builds use at git hosts and registries; passwords are never shown. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SourceLogin"][];
                    };
                };
            };
        };
        put?: never;
        /** Keeps a login, in place of the one before. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateSourceLogin"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SourceLogin"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/source-logins/by-prefix": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Forgets a login. */
        delete: {
            parameters: {
                query: {
                    prefix: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/plain": boolean;
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/terraform-workspaces/{workspace_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A workspace of Terraform: where its state is, and who holds it. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    workspace_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["TerraformWorkspace"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/terraform-workspaces/{workspace_id}/state-json/{state_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * A state in the form of `terraform show -json`, without values and outputs: those are sealed with the customer's key. Resources of
         *     all modules stand in the root module, under their full addresses.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    workspace_id: string;
                    state_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": unknown;
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/terraform-workspaces/{workspace_id}/states": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Every state that was written to a workspace, newest first. */
        get: {
            parameters: {
                query?: {
                    offset?: number;
                    limit?: number;
                    page?: number;
                };
                header?: never;
                path: {
                    workspace_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["TerraformState"][];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/terraform-workspaces/{workspace_id}/states/{state_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A state of a workspace, with its resources. What is in it is sealed with the customer's key, so `contents` is never given. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    workspace_id: string;
                    state_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["TerraformState"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/terraform-workspaces/{workspace_id}/states/{state_id}/diff": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Which resources one Terraform state knows and another does not. Values are sealed with the customer's key, and are not compared. */
        get: {
            parameters: {
                query?: {
                    /** @description id of another state; the one before when absent */
                    against?: string;
                };
                header?: never;
                path: {
                    workspace_id: string;
                    state_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["StateDiff"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/terraform-workspaces/{workspace_id}/states/{state_id}/restore": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Makes a state the current one again, under the next serial: the install's runner writes it, as the job that is answered. So is
         *     a state recovered that was kept beside. It changes what Terraform believes, and nothing else.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    workspace_id: string;
                    state_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Job"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/terraform-workspaces/{workspace_id}/unlock": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Frees the lock of a workspace, where a person holds it, or a job that is gone. That of a job that runs is not freed: two
         *     would write the state.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    workspace_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["TerraformWorkspace"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The tokens that are good for this org alone, and your own; who is no admin sees only their own. */
        get: {
            parameters: {
                query?: {
                    offset?: number;
                    limit?: number;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Token"][];
                    };
                };
            };
        };
        put?: never;
        /** Makes a token of yours for this org, with your role at most. The answer is the only place where it can be read. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateToken"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Token"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tokens/{token_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Revokes a token; at once, and for good. Who is no admin revokes only their own. */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    token_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Token"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/views": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Saved filters of the fleet: one's own, and those that others share. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SavedView"][];
                    };
                };
            };
        };
        put?: never;
        /** Saves a filter of the fleet; one of the same name is replaced. Sharing it with the org needs the role operator. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateSavedView"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SavedView"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/views/{view_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Deletes a saved view: one's own; an admin may delete those that others share. */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    view_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/workflow-steps/{step_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A step, by its id alone. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    step_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["WorkflowStep"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/workflow-steps/{step_id}/plan": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What a step would change: typed, masked, the worst first. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    step_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["PlanView"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/workflow-steps/{step_id}/plan/diff": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** How the plan of a step differs from an earlier plan of the same part, by that one's digest. */
        get: {
            parameters: {
                query: {
                    /** @description digest of an earlier plan of the same part */
                    against: string;
                };
                header?: never;
                path: {
                    step_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["PlanDiff"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/workflows": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Workflows of the org, newest first; with `cursor`, those that are older than the one that it names. */
        get: {
            parameters: {
                query?: {
                    type?: string;
                    /** @description words, with commas between them */
                    status?: string;
                    /** @description name or id */
                    install?: string;
                    /** @description id or address of the account that started it */
                    actor?: string;
                    /** @description id of the last workflow that is known */
                    cursor?: string;
                    offset?: number;
                    limit?: number;
                    page?: number;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Workflow"][];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/workflows/{workflow_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A workflow with every attempt at its steps. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    workflow_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Workflow"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /** Lets all plans of a workflow pass from now on. */
        patch: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    workflow_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["UpdateWorkflow"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Workflow"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        trace?: never;
    };
    "/v1/workflows/{workflow_id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Cancels a workflow: nothing new begins, what runs is interrupted. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    workflow_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": unknown;
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/workflows/{workflow_id}/steps": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The steps of a workflow, every attempt, in their order. */
        get: {
            parameters: {
                query?: {
                    offset?: number;
                    limit?: number;
                    page?: number;
                };
                header?: never;
                path: {
                    workflow_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["WorkflowStep"][];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/workflows/{workflow_id}/steps/{step_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A step of a workflow. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    workflow_id: string;
                    step_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["WorkflowStep"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/workflows/{workflow_id}/steps/{step_id}/approvals/{approval_id}/contents": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What a plan would change. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    workflow_id: string;
                    step_id: string;
                    approval_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": unknown;
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/workflows/{workflow_id}/steps/{step_id}/approvals/{approval_id}/response": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Says what shall become of a plan. The approval's id is the digest of the plan: another plan is refused. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    workflow_id: string;
                    step_id: string;
                    approval_id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateStepApprovalResponse"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["StepApprovalResponse"];
                    };
                };
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/workflows/{workflow_id}/steps/{step_id}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Tries a step again that has failed. An apply is planned anew. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    workflow_id: string;
                    step_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["StepRetried"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/workflows/{workflow_id}/steps/{step_id}/skip": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Goes on without a step that has failed. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    workflow_id: string;
                    step_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["StepRetried"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/workflows/{workflow_id}/view": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A workflow: its steps in their order with bars and reasons, and what may be done. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    workflow_id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RunView"];
                    };
                };
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ErrorBody"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/version": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What this server is, and which protocols of the Runner API it speaks. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Version"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description Who asks. */
        Account: {
            id: components["schemas"]["AccountId"];
            email: string;
            /** @description Always `service`: all clients know it. */
            account_type: string;
            org_ids: components["schemas"]["OrgId"][];
            /** @description Org id to `all` or `read`. */
            permissions: {
                [key: string]: string;
            };
            created_at: components["schemas"]["Timestamp"];
        };
        /** @description A person or a service that signs in. */
        AccountId: string;
        /** @description A browser or a CLI that is signed in. */
        AccountSession: {
            id: components["schemas"]["AccountSessionId"];
            /** @description `browser` or `cli`. */
            kind: string;
            name: string;
            address: string;
            /** @description Who vouched for the person; empty for a link or a token. */
            provider: string;
            /** @description The one that asks. */
            current: boolean;
            created_at: components["schemas"]["Timestamp"];
            seen_at: components["schemas"]["Timestamp"];
            expires_at: components["schemas"]["Timestamp"];
        };
        /** @description A browser or a CLI that is signed in. */
        AccountSessionId: string;
        AcrImage: {
            registry_url?: string;
            tenant_id?: string;
            client_id?: string;
        };
        /** @description One run of an action on an install. */
        ActionRun: {
            id: string;
            install_id: string;
            created_by_id: string;
            created_at: components["schemas"]["Timestamp"];
            updated_at: components["schemas"]["Timestamp"];
            action_workflow_config_id: string;
            status: string;
            trigger_type: string;
            install_action_workflow_id?: string;
            status_description?: string;
            workflow_id?: string;
            /**
             * Format: int64
             * @description Nanoseconds.
             */
            execution_time?: number;
            outputs?: Record<string, never>;
            job?: components["schemas"]["Job"] | null;
        };
        ActionStepConfig: {
            id: string;
            name: string;
            /** Format: int64 */
            idx: number;
            command?: string;
            inline_contents?: string;
            env_vars?: components["schemas"]["BTreeMap"];
            public_git_vcs_config?: components["schemas"]["GitSource"] | null;
            connected_github_vcs_config?: components["schemas"]["GitSource"] | null;
        };
        ActionStepRequest: {
            name: string;
            command?: string;
            inline_contents?: string;
            env_vars?: components["schemas"]["BTreeMap"];
            public_git_vcs_config?: components["schemas"]["GitSource"] | null;
            connected_github_vcs_config?: components["schemas"]["GitSource"] | null;
            references?: string[];
        };
        ActionTriggerConfig: {
            id: string;
            type: string;
            /** Format: int64 */
            index: number;
            component_id?: string;
            cron_schedule?: string;
        };
        ActionTriggerRequest: {
            type: string;
            component_name?: string;
            cron_schedule?: string;
            /** Format: int64 */
            index?: number;
        };
        ActionWorkflow: components["schemas"]["Stamp"] & {
            name: string;
            status: string;
            status_description?: string;
            labels?: components["schemas"]["BTreeMap"];
            /** Format: int64 */
            config_count?: number;
            configs?: components["schemas"]["ActionWorkflowConfig"][];
        };
        /** @description What configures an action in one version of the app. */
        ActionWorkflowConfig: components["schemas"]["Stamp"] & {
            action_workflow_id: string;
            /**
             * Format: int64
             * @description Nanoseconds.
             */
            timeout: number;
            steps?: components["schemas"]["ActionStepConfig"][];
            triggers?: components["schemas"]["ActionTriggerConfig"][];
            component_dependency_ids?: string[];
            role?: string;
            break_glass_role_arn?: string;
            kubernetes_context_name?: string;
        };
        /** @description Labels to add, or to change. */
        AddInstallLabels: {
            labels: components["schemas"]["BTreeMap"];
        };
        App: {
            id: components["schemas"]["AppId"];
            org_id: components["schemas"]["OrgId"];
            name: string;
            display_name?: string;
            description?: string;
            status: string;
            status_description: string;
            config_repo?: string;
            config_directory?: string;
            label_colors?: {
                [key: string]: string;
            };
            created_by_id: components["schemas"]["AccountId"];
            created_at: components["schemas"]["Timestamp"];
            updated_at: components["schemas"]["Timestamp"];
        };
        AppBreakGlassConfig: components["schemas"]["Stamp"] & {
            aws_iam_roles?: components["schemas"]["RoleConfig"][];
        };
        /** @description One version of an app, or a draft of one. */
        AppConfig: components["schemas"]["Stamp"] & {
            /** @description `pending`, `active`, `outdated` or `error`. */
            status: string;
            status_description?: string;
            /** Format: int64 */
            version?: number;
            /** @description SHA-256 of its content. */
            checksum?: string;
            readme?: string;
            cli_version?: string;
            state?: string;
            component_ids?: string[];
            action_ids?: string[];
            input?: components["schemas"]["AppInputConfig"] | null;
            sandbox?: components["schemas"]["AppSandboxConfig"] | null;
            runner?: components["schemas"]["AppRunnerConfig"] | null;
            stack?: components["schemas"]["AppStackConfig"] | null;
            permissions?: components["schemas"]["AppPermissionsConfig"] | null;
            break_glass?: components["schemas"]["AppBreakGlassConfig"] | null;
            policies?: components["schemas"]["AppPoliciesConfig"] | null;
            secrets?: components["schemas"]["AppSecretsConfig"] | null;
            operation_role_config?: components["schemas"]["AppOperationRoleConfig"] | null;
            component_config_connections?: components["schemas"]["ComponentConfigConnection"][];
            action_workflow_configs?: components["schemas"]["ActionWorkflowConfig"][];
        };
        AppGroupRequest: {
            description: string;
            display_name: string;
            /**
             * Format: int64
             * @description Place in the display; by name where all are equal.
             */
            index?: number;
        };
        /** @description A product of a vendor. */
        AppId: string;
        AppInput: {
            id: string;
            name: string;
            /** Format: int64 */
            index: number;
            required: boolean;
            sensitive: boolean;
            display_name?: string;
            description?: string;
            group_id?: string;
            group?: components["schemas"]["AppInputGroup"] | null;
            /** @description Not shown where the input is sensitive. */
            default?: string;
            type?: string;
            internal?: boolean;
            source?: string;
            /** @description The values that it takes, where those are listed. */
            options?: string[];
            /** @description Bounds of a number. */
            min?: string;
            max?: string;
            /** @description A regular expression that the whole value matches. */
            pattern?: string;
        };
        AppInputConfig: components["schemas"]["Stamp"] & {
            input_groups?: components["schemas"]["AppInputGroup"][];
            inputs?: components["schemas"]["AppInput"][];
        };
        AppInputGroup: {
            id: string;
            name: string;
            /** Format: int64 */
            index: number;
            display_name?: string;
            description?: string;
        };
        AppInputRequest: {
            description: string;
            display_name: string;
            group: string;
            /** Format: int64 */
            index?: number;
            default?: string;
            required?: boolean;
            sensitive?: boolean;
            /** @description `vendor` or `customer`. */
            source?: string;
            type?: string;
        };
        AppOperationRoleConfig: components["schemas"]["Stamp"] & {
            rules?: components["schemas"]["OperationRoleRule"][];
        };
        AppPermissionsConfig: components["schemas"]["Stamp"] & {
            aws_iam_roles?: components["schemas"]["RoleConfig"][];
            provision_aws_iam_role?: components["schemas"]["RoleConfig"] | null;
            maintenance_aws_iam_role?: components["schemas"]["RoleConfig"] | null;
            deprovision_aws_iam_role?: components["schemas"]["RoleConfig"] | null;
            custom_aws_iam_roles?: components["schemas"]["RoleConfig"][];
        };
        AppPoliciesConfig: components["schemas"]["Stamp"] & {
            policies?: components["schemas"]["PolicyConfig"][];
        };
        AppRunnerConfig: components["schemas"]["Stamp"] & {
            app_runner_type: string;
            cloud_platform?: string;
            env_vars?: components["schemas"]["BTreeMap"];
            helm_driver?: string;
            init_script?: string;
            instance_type?: string;
        };
        AppSandboxConfig: components["schemas"]["Stamp"] & {
            cloud_platform?: string;
            type?: string;
            terraform_version?: string;
            runtime?: string;
            pulumi_version?: string;
            pulumi_config?: components["schemas"]["BTreeMap"];
            public_git_vcs_config?: components["schemas"]["GitSource"] | null;
            connected_github_vcs_config?: components["schemas"]["GitSource"] | null;
            variables?: components["schemas"]["BTreeMap"];
            variables_files?: string[];
            env_vars?: components["schemas"]["BTreeMap"];
            drift_schedule?: string;
            operation_roles?: components["schemas"]["BTreeMap"];
            /** Format: int64 */
            max_auto_retries?: number;
            skip_noops?: boolean;
            auto_approve_on_policies_passing?: boolean;
        };
        AppSecretsConfig: components["schemas"]["Stamp"] & {
            secrets?: components["schemas"]["SecretConfig"][];
        };
        AppStackConfig: components["schemas"]["Stamp"] & {
            name: string;
            description: string;
            type: string;
            vpc_nested_template_url?: string;
            runner_nested_template_url?: string;
            custom_nested_stacks?: components["schemas"]["CustomNestedStack"][];
        };
        /** @description A value that all installs of an app see; the value itself is never shown. */
        AppVariable: components["schemas"]["Stamp"] & {
            name: string;
            /** Format: int64 */
            length: number;
        };
        ApprovalItem: {
            workflow_id: string;
            workflow_type: string;
            step_id: string;
            /** @description The digest of the plan: what an answer names. */
            digest: string;
            install_id: string;
            install_name: string;
            app_id: string;
            app_name: string;
            /** @description Such as `plan storefront`. */
            title: string;
            changes: components["schemas"]["PlanChanges"];
            /**
             * Format: int64
             * @description Resources that hold data and would be destroyed or replaced.
             */
            data_loss: number;
            asked_at: components["schemas"]["Timestamp"];
            /** @description Plans with the same contents have the same one. */
            contents: string;
            can_approve: components["schemas"]["Can"];
            component?: string;
            labels?: {
                [key: string]: string;
            };
            expires_at?: components["schemas"]["Timestamp"] | null;
            policies?: components["schemas"]["PolicyCounts"] | null;
            /** @description Why a person is asked though all plans were approved beforehand. */
            ask?: string;
            /** @description What was answered, in the list of answered plans. */
            answer?: string;
            answered_by?: string;
            answered_at?: components["schemas"]["Timestamp"] | null;
            note?: string;
            drift?: components["schemas"]["DriftWord"] | null;
        };
        /** @description Plans that wait for a person. */
        Approvals: {
            items: components["schemas"]["ApprovalItem"][];
            /** Format: int64 */
            total: number;
            next?: string;
        };
        /** @description A source archive that lies ready for a step to name it. */
        Archive: {
            digest: components["schemas"]["Digest"];
            /** Format: int64 */
            size_bytes: number;
        };
        /** @description An artifact as it stands in a registry. `image` of a build's and of a sync's outputs. */
        Artifact: {
            /** @description With the registry, where that is known: `host/path`. */
            repository: string;
            tag: string;
            digest: string;
            /** @description `repository@digest`. */
            ref: string;
            media_type: string;
            artifact_type?: string;
            /**
             * Format: int64
             * @description Of the manifest and all that it names.
             */
            size: number;
            annotations?: {
                [key: string]: string;
            };
            platform?: components["schemas"]["Platform"];
            urls?: string[];
        };
        /** @description What needs a person, the worst first. */
        Attention: {
            items: components["schemas"]["AttentionItem"][];
            /**
             * Format: int64
             * @description How many there are, shown or not; counted up to a bound.
             */
            total: number;
            /**
             * Format: int64
             * @description Plans that wait for an approval.
             */
            approvals: number;
            /** @description Workflows that run now. */
            running: components["schemas"]["RunningWorkflow"][];
            /** @description There are more than were counted. */
            more?: boolean;
        };
        AttentionItem: {
            /** @description `unknown`, `failed`, `approval`, `data-loss`, `offline`, `unhealthy`, `drifted`, `disabled`, `build-failed` or `build-runner`. */
            kind: string;
            /**
             * Format: int64
             * @description 0 is the worst.
             */
            rank: number;
            /** @description A sentence: what is the matter. */
            text: string;
            since: components["schemas"]["Timestamp"];
            install_id?: string;
            install_name?: string;
            component?: string;
            workflow_id?: string;
            step_id?: string;
            job_id?: string;
            runner_id?: string;
            build_id?: string;
            app_id?: string;
            /** @description What to do about it: the words of a button. */
            action?: string;
        };
        /** @description Something that happened, with names in place of ids. */
        AuditEntry: {
            id: string;
            time: components["schemas"]["Timestamp"];
            kind: string;
            /** @description Who did it. */
            who: string;
            /** @description A sentence. */
            text: string;
            subject_type: string;
            subject_id: string;
            data: unknown;
            subject_name?: string;
            install_id?: string;
            workflow_id?: string;
        };
        AuditPage: {
            entries: components["schemas"]["AuditEntry"][];
            next?: string;
        };
        BTreeMap: {
            [key: string]: string;
        };
        Build: components["schemas"]["Stamp"] & {
            component_id: string;
            component_name: string;
            component_config_connection_id: string;
            /** Format: int64 */
            component_config_version: number;
            /** @description `planning`, `building`, `active` or `error`. */
            status: string;
            status_v2?: components["schemas"]["CompositeStatus"] | null;
            status_description?: string;
            git_ref?: string;
            /** @description The artifact of an earlier build stands for this one's: the source has not moved. */
            no_op?: boolean;
            same_as?: string;
            checksum?: string;
            vcs_connection_commit?: components["schemas"]["Commit"] | null;
            /** @description Where it was copied from, and what was there. */
            source_ref?: string;
            source_digest?: string;
            artifact?: components["schemas"]["Artifact"] | null;
            /**
             * Format: int64
             * @description Steps of the build that an earlier one had done, of how many.
             */
            cache_hits?: number;
            /** Format: int64 */
            cache_steps?: number;
            /**
             * Format: int64
             * @description Nanoseconds, from the start of its job to its end.
             */
            duration?: number;
            log_stream?: components["schemas"]["LogStream"] | null;
            runner_job?: components["schemas"]["Job"] | null;
        };
        BuildRunnerState: {
            id: string;
            status: string;
            text: string;
            /**
             * Format: int64
             * @description Builds that wait or run.
             */
            builds_open?: number;
            /** Format: int64 */
            builds_running?: number;
        };
        /** @description Whether somebody may do something now, and why not. */
        Can: {
            ok: boolean;
            /** @description A sentence, where it may not be done. */
            reason?: string;
        };
        /** @description Something that was done to an install. */
        ChangeRow: {
            workflow_id: string;
            type: string;
            title: string;
            status: string;
            by: string;
            at: components["schemas"]["Timestamp"];
            finished_at?: components["schemas"]["Timestamp"] | null;
            /** Format: int64 */
            version?: number | null;
            plan_only?: boolean;
            trouble?: string;
        };
        CliConfig: {
            root_domain: string;
            dashboard_url: string;
            nuon_auth_enabled: boolean;
        };
        /** @description A commit that a build was made of. */
        Commit: {
            sha: string;
            author_name?: string;
            author_email?: string;
            message?: string;
        };
        Component: components["schemas"]["Stamp"] & {
            name: string;
            status: string;
            type: string;
            resolved_var_name: string;
            status_description?: string;
            var_name?: string;
            labels?: components["schemas"]["BTreeMap"];
            dependencies?: string[];
            /** Format: int64 */
            config_versions?: number;
        };
        /** @description What the requests of all types of components have. */
        ComponentConfigBase: {
            app_config_id?: string;
            checksum?: string;
            dependencies?: string[];
            references?: string[];
            build_timeout?: string;
            deploy_timeout?: string;
            drift_schedule?: string;
            kubernetes_context?: string;
            /** Format: int64 */
            max_auto_retries?: number;
            skip_noops?: boolean;
            auto_approve_on_policies_passing?: boolean;
            toggleable?: boolean;
            default_enabled?: boolean;
            operation_roles?: components["schemas"]["BTreeMap"];
        };
        /** @description What configures a component in one version of the app. */
        ComponentConfigConnection: components["schemas"]["Stamp"] & {
            component_id: string;
            component_name: string;
            type: string;
            /** Format: int64 */
            version: number;
            /** Format: int64 */
            app_config_version?: number;
            checksum?: string;
            component_dependency_ids?: string[];
            references?: string[];
            build_timeout?: string;
            deploy_timeout?: string;
            drift_schedule?: string;
            kubernetes_context_name?: string;
            /** Format: int64 */
            max_auto_retries?: number;
            skip_noops?: boolean;
            auto_approve_on_policies_passing?: boolean;
            toggleable?: boolean;
            default_enabled?: boolean;
            operation_roles?: components["schemas"]["BTreeMap"];
            terraform_module?: components["schemas"]["TerraformModule"] | null;
            helm?: components["schemas"]["HelmChart"] | null;
            kubernetes_manifest?: components["schemas"]["KubernetesManifest"] | null;
            docker_build?: components["schemas"]["DockerBuild"] | null;
            external_image?: components["schemas"]["ExternalImage"] | null;
            job?: components["schemas"]["JobConfig"] | null;
            pulumi?: components["schemas"]["Pulumi"] | null;
        };
        /** @description Components and what they need, laid out in ranks (columns) and lanes (rows). */
        ComponentGraph: {
            nodes: components["schemas"]["GraphNode"][];
            edges: components["schemas"]["GraphEdge"][];
            /** Format: int64 */
            ranks: number;
            /** Format: int64 */
            lanes: number;
        };
        ComponentHealth: {
            component: string;
            verdict: components["schemas"]["Verdict"];
            reason: string;
            since: components["schemas"]["Timestamp"];
            /** @description The component that it needs and that is the cause. */
            downstream_of?: string | null;
            observed_at?: components["schemas"]["Timestamp"] | null;
            /**
             * Format: int64
             * @description Objects and probes that were judged.
             */
            judged: number;
            /** @description Those that are not healthy, the worst first; at most 20. */
            objects: components["schemas"]["UnwellObject"][];
            checks: components["schemas"]["HealthCheck"][];
            /**
             * Format: double
             * @description The part of the time in which it served, between 0 and 1; time of which nothing is known does not count.
             */
            uptime?: number | null;
            /** @description One for each day, the oldest first. */
            days: components["schemas"]["HealthDay"][];
        };
        /** @description What an install lays over the settings of one component. Templates are rendered. */
        ComponentOverride: {
            /** @description YAML over the values of a chart. */
            helm_values?: string | null;
            /** @description HCL, or a JSON object, over the variables of a Terraform module. */
            tf_vars?: string | null;
        };
        /** @description A component in an install. */
        ComponentRow: {
            name: string;
            status: components["schemas"]["PartWord"];
            id?: string;
            type?: string;
            /** @description It is deployed, and the app does not have it any more. */
            retired?: boolean;
            disabled?: boolean;
            toggleable?: boolean;
            depends_on?: string[];
            needed_by?: string[];
            /** Format: int64 */
            version?: number | null;
            /**
             * Format: int64
             * @description The version that the next deploy brings, where it is another one.
             */
            next_version?: number | null;
            drift?: components["schemas"]["DriftWord"] | null;
            health?: components["schemas"]["HealthWord"] | null;
            health_reason?: string;
            deployed_at?: components["schemas"]["Timestamp"] | null;
            /** @description The workflow that deployed it last. */
            workflow_id?: string;
            /** @description A plan of it that waits: its step and workflow. */
            waiting_step_id?: string;
            waiting_workflow_id?: string;
            workspace_id?: string;
            outputs?: {
                [key: string]: unknown;
            };
        };
        /** @description A status with what there is to say about it. */
        CompositeStatus: {
            status: string;
            status_human_description?: string;
        };
        /** @description An action that carries its steps in the request; it needs no app config. */
        CreateActionRun: {
            name?: string | null;
            steps: components["schemas"]["StepSpec"][];
            run_env_vars?: {
                [key: string]: string;
            };
            /**
             * Format: int64
             * @description 1 to 3600 seconds; 300 when absent.
             */
            timeout_s?: number | null;
            /** @description Values that are masked in the log. */
            secrets?: string[];
            limits?: components["schemas"]["Limits"];
            /** @description Jobs that name the same target never run at the same time on an install. */
            target?: string | null;
            /**
             * Format: int64
             * @description Higher goes first.
             */
            priority?: number;
        };
        CreateActionWorkflow: {
            name?: string;
            labels?: components["schemas"]["BTreeMap"];
        };
        CreateActionWorkflowConfig: {
            app_config_id: string;
            steps: components["schemas"]["ActionStepRequest"][];
            triggers: components["schemas"]["ActionTriggerRequest"][];
            /**
             * Format: int64
             * @description Nanoseconds.
             */
            timeout?: number;
            dependencies?: string[];
            references?: string[];
            break_glass_role_arn?: string;
            role?: string;
            enable_kube_config?: boolean | null;
            kubernetes_context?: string;
        };
        CreateActionWorkflowRun: {
            /** @description The action as one config has it. */
            action_workflow_config_id?: string;
            /** @description Name of the action, instead: as the config has it that the install is at. */
            action?: string;
            role?: string;
            run_env_vars?: components["schemas"]["BTreeMap"];
            /** @description Values that must not appear in the log, beside the sensitive ones of the install. */
            secrets?: string[];
        };
        CreateApp: {
            name: string;
            display_name?: string;
            description?: string;
        };
        CreateAppBreakGlassConfig: {
            app_config_id: string;
            roles: components["schemas"]["RoleRequest"][];
        };
        /** @description Begins a draft. */
        CreateAppConfig: {
            readme?: string;
            cli_version?: string;
            app_branch_id?: string;
            intermediate_config_json?: string;
            plan_only?: boolean;
            skip_notification?: boolean;
        };
        CreateAppInputConfig: {
            groups: {
                [key: string]: components["schemas"]["AppGroupRequest"];
            };
            inputs: {
                [key: string]: components["schemas"]["AppInputRequest"];
            };
            app_config_id?: string;
        };
        CreateAppOperationRoleConfig: {
            app_config_id: string;
            rules: components["schemas"]["OperationRoleRuleRequest"][];
        };
        CreateAppPermissionsConfig: {
            app_config_id: string;
            provision_role: components["schemas"]["RoleRequest"];
            maintenance_role: components["schemas"]["RoleRequest"];
            deprovision_role: components["schemas"]["RoleRequest"];
            custom_roles?: components["schemas"]["RoleRequest"][];
            break_glass_roles?: components["schemas"]["RoleRequest"][];
        };
        CreateAppPoliciesConfig: {
            app_config_id: string;
            policies?: components["schemas"]["PolicyRequest"][];
        };
        CreateAppRunnerConfig: {
            type: string;
            app_config_id?: string;
            env_vars?: components["schemas"]["BTreeMap"];
            helm_driver?: string;
            init_script_url?: string;
            instance_type?: string;
            public_api_url?: string;
            runner_api_url?: string;
        };
        CreateAppSandboxConfig: {
            /** @description Older clients call them `sandbox_inputs`. */
            variables?: components["schemas"]["BTreeMap"];
            env_vars?: components["schemas"]["BTreeMap"];
            app_config_id?: string;
            type?: string;
            terraform_version?: string;
            runtime?: string;
            pulumi_version?: string;
            pulumi_config?: components["schemas"]["BTreeMap"];
            public_git_vcs_config?: components["schemas"]["GitSource"] | null;
            connected_github_vcs_config?: components["schemas"]["GitSource"] | null;
            variables_files?: string[];
            drift_schedule?: string;
            operation_roles?: components["schemas"]["BTreeMap"];
            /** Format: int64 */
            max_auto_retries?: number;
            skip_noops?: boolean;
            auto_approve_on_policies_passing?: boolean;
            references?: string[];
        };
        CreateAppSecretsConfig: {
            app_config_id: string;
            secrets?: components["schemas"]["SecretRequest"][];
        };
        CreateAppStackConfig: {
            app_config_id: string;
            name: string;
            description: string;
            type: string;
            vpc_nested_template_url?: string;
            runner_nested_template_url?: string;
            custom_nested_stacks?: components["schemas"]["CustomNestedStack"][];
        };
        CreateAppVariable: {
            name: string;
            value: string;
        };
        CreateBuild: {
            /** @description Another branch, tag or commit than the config names; the tag of an image. */
            git_ref?: string;
            /** @description As the config names it: what clients of the dialect send. */
            use_latest?: boolean;
            /** @description Build even where the source has not moved. */
            anew?: boolean;
        };
        CreateComponent: {
            name: string;
            var_name?: string;
            labels?: components["schemas"]["BTreeMap"];
            dependencies?: string[];
        };
        CreateDockerBuild: components["schemas"]["ComponentConfigBase"] & {
            dockerfile: string;
            target?: string;
            build_args?: string[];
            env_vars?: components["schemas"]["BTreeMap"];
            public_git_vcs_config?: components["schemas"]["GitSource"] | null;
            connected_github_vcs_config?: components["schemas"]["GitSource"] | null;
        };
        CreateExternalImage: components["schemas"]["ComponentConfigBase"] & {
            image_url: string;
            tag?: string;
            update_policy?: string;
            aws_ecr_image_config?: components["schemas"]["EcrImage"] | null;
            gcp_gar_image_config?: components["schemas"]["GarImage"] | null;
            azure_acr_image_config?: components["schemas"]["AcrImage"] | null;
        };
        CreateHelmChart: components["schemas"]["ComponentConfigBase"] & {
            chart_name: string;
            values: components["schemas"]["BTreeMap"];
            namespace?: string;
            storage_driver?: string;
            values_files?: string[];
            helm_repo_config?: components["schemas"]["HelmRepo"] | null;
            take_ownership?: boolean;
            skip_crds?: boolean;
            public_git_vcs_config?: components["schemas"]["GitSource"] | null;
            connected_github_vcs_config?: components["schemas"]["GitSource"] | null;
        };
        /** @description Names no cloud: the install is local. */
        CreateInstall: {
            name: string;
            aws_account?: components["schemas"]["Region"] | null;
            azure_account?: components["schemas"]["Location"] | null;
            gcp_account?: components["schemas"]["Project"] | null;
            /** @description Inputs of the app that this install gives. */
            inputs?: {
                [key: string]: string;
            };
            /** @description What this install lays over settings of its components, by the component's name. */
            component_overrides?: {
                [key: string]: components["schemas"]["ComponentOverride"];
            };
            labels?: {
                [key: string]: string;
            };
            metadata?: components["schemas"]["InstallMetadata"] | null;
            install_config?: components["schemas"]["UpdateInstallConfig"] | null;
        };
        /** @description Deploys a build of a component. */
        CreateInstallDeploy: {
            build_id?: string;
            /** @description All that depends on the component, too. */
            deploy_dependents?: boolean;
            /** @description Only shows what would change. */
            plan_only?: boolean;
            /** @description The role that it is carried out with. */
            role?: string;
        };
        CreateJob: components["schemas"]["ComponentConfigBase"] & {
            image_url: string;
            tag: string;
            cmd?: string[];
            args?: string[];
            env_vars?: components["schemas"]["BTreeMap"];
        };
        CreateKubernetesManifest: components["schemas"]["ComponentConfigBase"] & {
            manifest?: string;
            kustomize?: components["schemas"]["Kustomize"] | null;
            namespace?: string;
            public_git_vcs_config?: components["schemas"]["GitSource"] | null;
            connected_github_vcs_config?: components["schemas"]["GitSource"] | null;
        };
        CreateOrg: {
            name: string;
            use_sandbox_mode?: boolean;
            /** @description How jobs of a simulated org are played: `seed`, `step_ms`, `fail_percent`, `drift_percent`, `unknown_percent`, `resources`. */
            simulation?: {
                [key: string]: number;
            } | null;
        };
        CreateOrgInvite: {
            email: string;
            /** @description `org_admin`, or a role by its own name; `org_admin` when absent, as existing clients expect. */
            role_type?: string | null;
            role?: components["schemas"]["Role"] | null;
        };
        CreatePulumi: components["schemas"]["ComponentConfigBase"] & {
            runtime: string;
            version?: string;
            config?: components["schemas"]["BTreeMap"];
            env_vars?: components["schemas"]["BTreeMap"];
            public_git_vcs_config?: components["schemas"]["GitSource"] | null;
            connected_github_vcs_config?: components["schemas"]["GitSource"] | null;
        };
        CreateRunbookRun: {
            inputs?: {
                [key: string]: string;
            };
            /** @description Plans need no person's approval. */
            approve_all?: boolean;
            /** @description Only shows what would change. */
            plan_only?: boolean;
        };
        /** @description A job that does nothing, or a health check, for a runner. */
        CreateRunnerJob: {
            type: components["schemas"]["JobType"];
            /** Format: int64 */
            sleep_ms?: number;
            /** Format: int64 */
            priority?: number;
        };
        CreateSavedView: {
            name: string;
            query: string;
            shared?: boolean;
        };
        CreateSourceLogin: {
            /** @description The beginning of the addresses that it is for, as `github.com/acme` or `registry.example.com`. */
            prefix: string;
            username: string;
            password: string;
            expires_at?: components["schemas"]["Timestamp"] | null;
        };
        CreateStepApprovalResponse: {
            /** @description `approve`, `deny`, `deny-skip-current`, `deny-skip-current-and-dependents` or `retry`. */
            response_type: string;
            note?: string;
        };
        CreateTerraformModule: components["schemas"]["ComponentConfigBase"] & {
            variables: components["schemas"]["BTreeMap"];
            env_vars: components["schemas"]["BTreeMap"];
            version?: string;
            variables_files?: string[];
            public_git_vcs_config?: components["schemas"]["GitSource"] | null;
            connected_github_vcs_config?: components["schemas"]["GitSource"] | null;
        };
        CreateToken: {
            name: string;
            role: components["schemas"]["Role"];
            runner_id?: components["schemas"]["RunnerId"] | null;
            /**
             * Format: int64
             * @description Never when absent.
             */
            expires_in_s?: number | null;
        };
        /** @description Starts a workflow on an install. */
        CreateWorkflow: {
            /**
             * @description `provision`, `reprovision`, `reprovision_sandbox`, `deprovision`, `deprovision_sandbox`, `deploy_components`,
             *     `manual_deploy`, `teardown_component`, `teardown_components`, `input_update`, `action_workflow_run`,
             *     `runbook_run`, `sync_secrets`, `drift_run` or `drift_run_reprovision_sandbox`.
             */
            type: string;
            /** @description The component that it is about. */
            component?: string;
            /** @description All that depends on the component, too. */
            dependents?: boolean;
            /** @description `teardown_component`: those that need the component are torn down first. */
            with_dependents?: boolean;
            /** @description `teardown_component`: the component goes alone, though others need it. */
            force?: boolean;
            /** @description Deploys again what was deployed last, whatever was synced or set since: the way back from drift. */
            deployed?: boolean;
            /** @description Only these, for `deploy_components`; all where none is named. */
            components?: string[];
            /** @description Inputs that have changed, for `input_update`. */
            inputs?: string[];
            action?: string;
            runbook?: string;
            /** @description Only the sandbox. */
            skip_components?: boolean;
            /** @description Only shows what would change. */
            plan_only?: boolean;
            /** @description Plans need no person's approval. */
            approve_all?: boolean;
            /** @description What does not need the part that failed goes on. */
            continue_on_error?: boolean;
            /**
             * Format: int64
             * @description Another version of the app than the install is at: a rollback, where it is an older one.
             */
            config_version?: number | null;
            /** @description Environment of an action. */
            run_env_vars?: {
                [key: string]: string;
            };
            /** @description What a runbook asks for. */
            runbook_inputs?: {
                [key: string]: string;
            };
            /** @description The role that its steps are carried out with, instead of the one that the app says. */
            role?: string;
        };
        /** @description What a runner joins with. */
        CredentialId: string;
        /** @description Who we are to a registry or a git host. The password stands in the spec's `secrets` too. */
        Credentials: {
            username: string;
            password: string;
        };
        /** @description Who is signed in. */
        CurrentSession: {
            account_id: components["schemas"]["AccountId"];
            email: string;
            /** @description What the request showed: `token`, `browser` or `cli`. */
            by: string;
            orgs: components["schemas"]["OrgRole"][];
        };
        CustomNestedStack: {
            name?: string;
            template_url?: string;
            /** Format: int64 */
            index?: number;
            parameters?: components["schemas"]["BTreeMap"];
        };
        DeployAll: {
            plan_only?: boolean;
            role?: string;
            /** @description Only the sandbox. */
            skip_components?: boolean;
            /** @description Teardown of one component: those that need it are torn down first. */
            with_dependents?: boolean;
            /** @description Teardown of one component: it goes alone, though others need it. */
            force?: boolean;
        };
        Digest: string;
        DockerBuild: components["schemas"]["Stamp"] & {
            component_config_connection_id: string;
            dockerfile: string;
            target?: string;
            build_args?: string[];
            env_vars?: components["schemas"]["BTreeMap"];
            public_git_vcs_config?: components["schemas"]["GitSource"] | null;
            connected_github_vcs_config?: components["schemas"]["GitSource"] | null;
        };
        /**
         * @description What the last look for drift found.
         * @enum {string}
         */
        DriftWord: "none" | "drifted" | "never-looked" | "look-failed";
        EcrImage: {
            aws_region?: string;
            iam_role_arn?: string;
        };
        Empty: Record<string, never>;
        /** @description The body of every error answer. `error`, `description` and `user_error` are what existing clients read. */
        ErrorBody: {
            error: string;
            description?: string;
            user_error?: boolean;
            code?: string;
            hint?: string | null;
            /** @description `has_dependents`: the components that need what was to be torn down. */
            dependents?: string[];
            request_id?: string;
        };
        /** @description Something that happened in an org. */
        Event: {
            /** @description What `Last-Event-ID` takes. */
            id: string;
            time: components["schemas"]["Timestamp"];
            /** @description For example `job.state`, `runner.joined`, `install.created`. */
            kind: string;
            subject_type: string;
            subject_id: string;
            actor: string;
            data: Record<string, never>;
        };
        Execution: {
            id: components["schemas"]["ExecutionId"];
            runner_job_id: components["schemas"]["JobId"];
            /** Format: int64 */
            epoch: number;
            /** Format: int64 */
            generation: number;
            /** @description `pending`, `in-progress`, `unknown`, or how it ended. */
            status: string;
            status_description: string;
            created_at: components["schemas"]["Timestamp"];
            started_at?: components["schemas"]["Timestamp"] | null;
            finished_at?: components["schemas"]["Timestamp"] | null;
        };
        /** @description One attempt at a job. */
        ExecutionId: string;
        ExternalImage: components["schemas"]["Stamp"] & {
            component_config_connection_id: string;
            image_url: string;
            tag?: string;
            update_policy?: string;
            aws_ecr_image_config?: components["schemas"]["EcrImage"] | null;
            gcp_gar_image_config?: components["schemas"]["GarImage"] | null;
            azure_acr_image_config?: components["schemas"]["AcrImage"] | null;
        };
        Facet: {
            value: string;
            /** Format: int64 */
            count: number;
            /** @description What people call it, where that is another word: the name of an app. */
            name?: string;
        };
        /** @description A page of installs, in the order that was asked for. */
        Fleet: {
            rows: components["schemas"]["FleetRow"][];
            /**
             * Format: int64
             * @description Installs of the org.
             */
            total: number;
            /**
             * Format: int64
             * @description Installs that the filter takes.
             */
            matched: number;
            facets: components["schemas"]["FleetFacets"];
            /** @description What the next page is asked for with. */
            next?: string;
        };
        FleetComponent: {
            name: string;
            status: components["schemas"]["PartWord"];
            /** @description `terraform_module`, `helm_chart` and so on. */
            type?: string;
            drifted?: boolean;
            /** @description Switched off in this install. */
            disabled?: boolean;
            /**
             * Format: int64
             * @description The version of the app that it was deployed from.
             */
            version?: number | null;
        };
        /** @description How many installs of the org have each value, whatever is filtered. */
        FleetFacets: {
            status: components["schemas"]["Facet"][];
            app: components["schemas"]["Facet"][];
            version: components["schemas"]["Facet"][];
            drift: components["schemas"]["Facet"][];
            health: components["schemas"]["Facet"][];
            runner: components["schemas"]["Facet"][];
            platform: components["schemas"]["Facet"][];
            /** @description The most frequent labels, each as `key=value`. */
            label?: components["schemas"]["Facet"][];
        };
        /** @description How many installs are how well. */
        FleetHealth: {
            /** Format: int64 */
            total: number;
            /** Format: int64 */
            healthy: number;
            /** Format: int64 */
            progressing: number;
            /** Format: int64 */
            degraded: number;
            /** Format: int64 */
            unhealthy: number;
            /** Format: int64 */
            unknown: number;
            /**
             * Format: int64
             * @description Nothing is observed in them.
             */
            unset: number;
            all_healthy: boolean;
        };
        FleetRow: {
            id: string;
            name: string;
            app_id: string;
            app_name: string;
            runner_id: string;
            runner_status: components["schemas"]["RunnerWord"];
            /** @description `aws`, `azure`, `gcp` or `local`. */
            platform: string;
            /** @description The worst of its sandbox and its components. */
            status: components["schemas"]["PartWord"];
            sandbox_status: components["schemas"]["PartWord"];
            /** @description Every component that it wants or has, by name. */
            components: components["schemas"]["FleetComponent"][];
            /**
             * Format: int64
             * @description How many parts differ from what was deployed, as the last looks found.
             */
            drifted: number;
            created_at: components["schemas"]["Timestamp"];
            /** @description When something of it changed last. */
            changed_at: components["schemas"]["Timestamp"];
            region?: string;
            labels?: {
                [key: string]: string;
            };
            runner_seen_at?: components["schemas"]["Timestamp"] | null;
            health?: components["schemas"]["HealthWord"] | null;
            /**
             * Format: int64
             * @description The version of the app that was deployed last; absent before the first deploy.
             */
            version?: number | null;
            /**
             * Format: int64
             * @description The newest version of the app.
             */
            latest_version?: number | null;
            /** @description A rollback keeps it at its version. */
            kept?: boolean;
            /** @description Who changed it last. */
            changed_by?: string;
            /** @description The workflow that runs, waits, or ran last. */
            workflow_id?: string;
            workflow_type?: string;
            workflow_status?: string;
        };
        ForgetInstall: {
            /** @description Though something is deployed, or a workflow is not over. */
            force?: boolean;
        };
        GarImage: {
            gcp_project_id?: string;
            gcp_region?: string;
            service_account_email?: string;
            workload_identity_provider?: string;
        };
        /** @description A directory of a git repository. */
        GitSource: {
            repo: string;
            directory: string;
            branch?: string;
            gitRef?: string;
            pathFilter?: string;
        };
        GraphEdge: {
            /** @description What is needed. */
            from: string;
            /** @description What needs it. */
            to: string;
        };
        GraphNode: {
            name: string;
            /** Format: int64 */
            rank: number;
            /** Format: int64 */
            lane: number;
            type?: string;
            status?: components["schemas"]["PartWord"] | null;
            drift?: components["schemas"]["DriftWord"] | null;
            health?: components["schemas"]["HealthWord"] | null;
            disabled?: boolean;
        };
        Health: {
            checked_at: components["schemas"]["Timestamp"];
            outputs: Record<string, never>;
        };
        /** @description A check that somebody has pushed. */
        HealthCheck: {
            name: string;
            status: components["schemas"]["Verdict"];
            message: string;
            reported_at: components["schemas"]["Timestamp"];
            /**
             * Format: int64
             * @description In seconds.
             */
            stale_after_s: number;
            /** @description It was not reported in time: it counts as unknown. */
            stale: boolean;
        };
        HealthDay: {
            /** @description In UTC. */
            date: string;
            verdict?: components["schemas"]["Verdict"] | null;
            /** Format: double */
            uptime?: number | null;
        };
        /** @description A verdict that became another one. */
        HealthTransition: {
            component: string;
            at: components["schemas"]["Timestamp"];
            from?: string | null;
            to: string;
            reason: string;
            downstream_of?: string | null;
        };
        /**
         * @description How a component is, as the runner observes it.
         * @enum {string}
         */
        HealthWord: "healthy" | "progressing" | "degraded" | "unhealthy" | "unknown" | "not-applicable";
        HelmChart: components["schemas"]["Stamp"] & {
            component_config_connection_id: string;
            chart_name: string;
            namespace?: string;
            storage_driver?: string;
            values?: components["schemas"]["BTreeMap"];
            values_files?: string[];
            take_ownership?: boolean;
            skip_crds?: boolean;
            helm_config_json?: components["schemas"]["HelmConfig"] | null;
            public_git_vcs_config?: components["schemas"]["GitSource"] | null;
            connected_github_vcs_config?: components["schemas"]["GitSource"] | null;
        };
        /** @description What the dialect keeps of a chart in one more place. */
        HelmConfig: {
            chart_name: string;
            helm_repo_config?: components["schemas"]["HelmRepo"] | null;
            namespace?: string;
            storage_driver?: string;
            values?: components["schemas"]["BTreeMap"];
            values_files?: string[];
            take_ownership?: boolean;
            skip_crds?: boolean;
        };
        HelmRepo: {
            chart: string;
            repo_url: string;
            version?: string;
        };
        Install: {
            id: components["schemas"]["InstallId"];
            org_id: components["schemas"]["OrgId"];
            app_id: components["schemas"]["AppId"];
            name: string;
            runner_id: components["schemas"]["RunnerId"];
            /** @description `pending`, `active`, `offline` or `disabled`. */
            runner_status: string;
            sandbox_status: string;
            composite_component_status: string;
            /** @description What brings it up, where it was just made. */
            workflow_id?: string;
            /** @description Inputs whose value is not deployed: their deploy was denied, failed, or has not come yet. Lists do not tell it. */
            undeployed_inputs?: string[];
            /**
             * Format: int64
             * @description The version of the app that a rollback keeps it at; none: the next deploy brings the latest version. Lists do not tell it.
             */
            kept_at_version?: number | null;
            /**
             * Format: int64
             * @description The latest version of the app. Lists do not tell it.
             */
            latest_version?: number | null;
            /** @description `aws`, `azure`, `gcp` or `local`. */
            cloud_platform: string;
            aws_account?: components["schemas"]["Region"] | null;
            azure_account?: components["schemas"]["Location"] | null;
            gcp_account?: components["schemas"]["Project"] | null;
            /** @description Those of the app, and the install's own over them. */
            labels?: {
                [key: string]: string;
            };
            metadata?: components["schemas"]["InstallMetadata"] | null;
            install_config?: components["schemas"]["InstallConfig"] | null;
            created_by_id: components["schemas"]["AccountId"];
            created_at: components["schemas"]["Timestamp"];
            updated_at: components["schemas"]["Timestamp"];
        };
        /** @description An action on an install, with its latest runs. */
        InstallActionWorkflow: {
            id: string;
            install_id: string;
            action_workflow_id: string;
            status: string;
            action_workflow?: components["schemas"]["ActionWorkflow"] | null;
            runs?: components["schemas"]["ActionRun"][];
        };
        /** @description A component as it is on an install. */
        InstallComponent: {
            id: string;
            install_id: string;
            component_id: string;
            /** @description `active`, `inactive`, or `pending` where it was never deployed. */
            status: string;
            created_at: components["schemas"]["Timestamp"];
            updated_at: components["schemas"]["Timestamp"];
            status_description?: string;
            /** @description Whether the install leaves it in. */
            enabled?: boolean;
            /**
             * Format: int64
             * @description The version of the app that is deployed.
             */
            config_version?: number;
            /** @description The last look has found a difference, and nothing was deployed since. */
            drifted?: boolean;
            component?: components["schemas"]["Component"] | null;
            /** @description The newest. */
            install_deploys?: components["schemas"]["InstallDeploy"][];
        };
        /** @description What an install says about itself. */
        InstallConfig: {
            id: string;
            install_id: string;
            org_id: string;
            /** @description `prompt` or `approve-all`. */
            approval_option: string;
            created_by_id: string;
            created_at: components["schemas"]["Timestamp"];
            updated_at: components["schemas"]["Timestamp"];
            /** @description Components that were switched on or off; the others are as the app says. */
            component_toggles?: {
                [key: string]: boolean;
            };
            /** @description The install's own labels, without those of the app. */
            labels?: components["schemas"]["BTreeMap"];
        };
        /** @description One plan of a component, and what became of it. */
        InstallDeploy: {
            id: string;
            install_id: string;
            component_id: string;
            component_name: string;
            /** @description `sync-image`, `apply` or `teardown`. */
            install_deploy_type: string;
            /** @description `queued`, `planning`, `pending-approval`, `executing`, `active`, `inactive`, `error`, and the like. */
            status: string;
            created_at: components["schemas"]["Timestamp"];
            created_by_id: string;
            updated_at: components["schemas"]["Timestamp"];
            workflow_id: string;
            install_component_id?: string;
            install_workflow_id?: string;
            status_description?: string;
            status_v2?: components["schemas"]["CompositeStatus"] | null;
            build_id?: string;
            /** Format: int64 */
            component_config_version?: number;
            plan_only?: boolean;
            role?: string;
            planned_at?: components["schemas"]["Timestamp"] | null;
            applied_at?: components["schemas"]["Timestamp"] | null;
            outputs?: {
                [key: string]: unknown;
            };
            runner_jobs?: components["schemas"]["Job"][];
            log_stream?: components["schemas"]["LogStreamRef"] | null;
            policy_reports?: components["schemas"]["PolicyReport"][];
        };
        /** @description The last look for drift at each part of an install. */
        InstallDrift: {
            parts: components["schemas"]["PartDrift"][];
            can: {
                [key: string]: components["schemas"]["Can"];
            };
        };
        /** @description The health of an install: the worst of its components, and each of them. */
        InstallHealth: {
            install_id: string;
            verdict?: components["schemas"]["Verdict"] | null;
            components: components["schemas"]["ComponentHealth"][];
        };
        /** @description One app running for one customer. */
        InstallId: string;
        /** @description The inputs of an install: what was given, and the app's defaults. Sensitive values are not shown. */
        InstallInputs: components["schemas"]["Stamp"] & {
            install_id: string;
            /** Format: int64 */
            version: number;
            values?: components["schemas"]["BTreeMap"];
            redacted_values?: components["schemas"]["BTreeMap"];
            /** @description What the install lays over settings of its components, by the component's name. */
            component_overrides?: {
                [key: string]: components["schemas"]["ComponentOverride"];
            };
            /** @description What deploys the change. */
            workflow_id?: string;
        };
        InstallMetadata: {
            /** @description Who keeps the install: `nuon/cli/install-config` for one that is kept in a file, `nuon/dashboard`, or nobody. */
            managed_by?: string;
        };
        /** @description The first page of an install. */
        InstallOverview: {
            install: components["schemas"]["FleetRow"];
            runner: components["schemas"]["Runner"];
            /** @description `prompt` or `approve-all`. */
            approval_option: string;
            components: components["schemas"]["ComponentRow"][];
            /** @description Values that the app's templates call outputs, by component; sensitive ones hidden. */
            outputs: {
                [key: string]: unknown;
            };
            changes: components["schemas"]["ChangeRow"][];
            can: {
                [key: string]: components["schemas"]["Can"];
            };
            /** @description The workflow that runs now. */
            now?: components["schemas"]["RunningWorkflow"][];
            /** @description Inputs whose value is not deployed. */
            undeployed_inputs?: string[];
            /**
             * Format: int64
             * @description A rollback keeps the install at this version.
             */
            kept_at_version?: number | null;
            managed_by?: string;
            /**
             * Format: int64
             * @description Jobs of its runner that wait.
             */
            jobs_queued?: number;
            /** @description Sentences that a person must know before anything else. */
            warnings?: string[];
            has_readme?: boolean;
            sandbox?: components["schemas"]["ComponentRow"] | null;
        };
        /** @description A runbook that can be run on an install. */
        InstallRunbook: {
            id: string;
            install_id: string;
            runbook_id: string;
            status?: string;
            runbook?: components["schemas"]["Runbook"] | null;
            /** @description The newest. */
            runs?: components["schemas"]["InstallRunbookRun"][];
        };
        InstallRunbookRun: {
            id: string;
            install_id: string;
            install_runbook_id: string;
            status: string;
            install_workflow_id: string;
            created_at: components["schemas"]["Timestamp"];
            created_by_id: string;
            updated_at: components["schemas"]["Timestamp"];
            status_description?: string;
            /**
             * Format: int64
             * @description Nanoseconds.
             */
            execution_time?: number;
            steps?: components["schemas"]["WorkflowStep"][];
        };
        /** @description One plan of the sandbox, and what became of it. */
        InstallSandboxRun: {
            id: string;
            install_id: string;
            /** @description `provision`, `reprovision` or `deprovision`. */
            run_type: string;
            status: string;
            created_at: components["schemas"]["Timestamp"];
            created_by_id: string;
            updated_at: components["schemas"]["Timestamp"];
            workflow_id: string;
            install_workflow_id?: string;
            status_description?: string;
            status_v2?: components["schemas"]["CompositeStatus"] | null;
            role?: string;
            planned_at?: components["schemas"]["Timestamp"] | null;
            applied_at?: components["schemas"]["Timestamp"] | null;
            outputs?: {
                [key: string]: unknown;
            };
            runner_jobs?: components["schemas"]["Job"][];
            log_stream?: components["schemas"]["LogStreamRef"] | null;
            policy_reports?: components["schemas"]["PolicyReport"][];
        };
        /** @description Something that an install does by the clock. */
        InstallSchedule: {
            /** @description `action` or `drift`. */
            kind: string;
            cron: string;
            next_at: components["schemas"]["Timestamp"];
            /** @description Of the action or the component; empty: the sandbox. */
            name?: string;
            last_at?: components["schemas"]["Timestamp"] | null;
            /** @description What became of the last tick, where it started nothing. */
            note?: string;
            workflow_id?: string;
        };
        /** @description The stack that the customer applies. */
        InstallStack: {
            id: string;
            install_id: string;
            /** @description Newest first. */
            versions?: components["schemas"]["InstallStackVersion"][];
            install_stack_outputs?: components["schemas"]["InstallStackOutputs"] | null;
        };
        InstallStackOutputs: {
            id: string;
            data_contents?: {
                [key: string]: unknown;
            };
        };
        InstallStackVersion: {
            id: string;
            install_id: string;
            composite_status: components["schemas"]["CompositeStatus"];
            created_at: components["schemas"]["Timestamp"];
            app_config_id?: string;
            /** @description What the customer applies; of a local install, the command that starts its runner. */
            contents?: string;
            phone_home_id?: string;
            phone_home_url?: string;
        };
        /** @description The state of an install, as templates see it. */
        InstallState: {
            /** Format: int64 */
            version: number;
            /** @description Sensitive values are masked. */
            state: unknown;
        };
        /** @description A version of an install's state. */
        InstallStateVersion: {
            /** Format: int64 */
            version: number;
            /** @description What changed with it. */
            parts: string[];
            created_at: components["schemas"]["Timestamp"];
            workflow_id?: string;
        };
        /** @description Somebody who is asked to join an org. */
        InviteId: string;
        Job: {
            id: components["schemas"]["JobId"];
            org_id: components["schemas"]["OrgId"];
            runner_id: components["schemas"]["RunnerId"];
            install_id?: components["schemas"]["InstallId"] | null;
            owner_id: string;
            owner_type: string;
            type: components["schemas"]["JobType"];
            group: components["schemas"]["JobGroup"];
            operation: string;
            name?: string | null;
            status: components["schemas"]["JobState"];
            /** @description A sentence: the error of a failed job, the reason of an unknown one, why a queued one waits. */
            status_description: string;
            /** @description Only while it waits. */
            waiting_reason?: string | null;
            target?: string | null;
            /** Format: int64 */
            priority: number;
            log_stream_id: components["schemas"]["LogStreamId"];
            /** Format: int64 */
            execution_count: number;
            /** Format: int64 */
            max_executions: number;
            /**
             * Format: int64
             * @description Nanoseconds.
             */
            execution_timeout: number;
            /** Format: int64 */
            queue_timeout: number;
            /** Format: int64 */
            execution_time?: number | null;
            cancel_requested_at?: components["schemas"]["Timestamp"] | null;
            error?: components["schemas"]["JobError"] | null;
            steps?: components["schemas"]["StepResult"][];
            outputs?: Record<string, never>;
            executions?: components["schemas"]["Execution"][];
            final_runner_job_execution_id?: components["schemas"]["ExecutionId"] | null;
            created_by_id: string;
            created_at: components["schemas"]["Timestamp"];
            updated_at: components["schemas"]["Timestamp"];
            started_at?: components["schemas"]["Timestamp"] | null;
            finished_at?: components["schemas"]["Timestamp"] | null;
        };
        JobConfig: components["schemas"]["Stamp"] & {
            component_config_connection_id: string;
            image_url: string;
            tag: string;
            cmd?: string[];
            args?: string[];
            env_vars?: components["schemas"]["BTreeMap"];
        };
        /** @description Why a job did not finish: a stable code and a sentence. */
        JobError: {
            code: string;
            message: string;
        };
        /**
         * @description A group has its own slots on a runner, so that a long deploy never holds up a health check.
         * @enum {string}
         */
        JobGroup: "health-checks" | "sync" | "build" | "deploy" | "sandbox" | "operations" | "actions";
        /** @description The unit of work that a runner takes. */
        JobId: string;
        /**
         * @description Where a job stands. The names are those of the API.
         * @enum {string}
         */
        JobState: "queued" | "available" | "in-progress" | "unknown" | "finished" | "failed" | "timed-out" | "cancelled" | "not-attempted";
        /**
         * @description What a job does.
         * @enum {string}
         */
        JobType: "noop" | "health-check" | "actions-workflow" | "terraform-module-build" | "helm-chart-build" | "kubernetes-manifest-build" | "docker-build" | "container-image-build" | "oci-sync" | "terraform-deploy" | "helm-chart-deploy" | "kubernetes-manifest-deploy" | "job-deploy" | "sandbox-terraform" | "sandbox-sync-secrets";
        /** @description How to bring a runner up. The credential is shown once. */
        JoinCommand: {
            credential_id: components["schemas"]["CredentialId"];
            runner_id: components["schemas"]["RunnerId"];
            runner_url: string;
            credential: string;
            trust_keys: string[];
            /** @description The whole command line. */
            command: string;
        };
        KubernetesManifest: components["schemas"]["Stamp"] & {
            component_config_connection_id: string;
            manifest?: string;
            kustomize?: components["schemas"]["Kustomize"] | null;
            namespace?: string;
            public_git_vcs_config?: components["schemas"]["GitSource"] | null;
            connected_github_vcs_config?: components["schemas"]["GitSource"] | null;
        };
        Kustomize: {
            path?: string;
            patches?: string[];
            enable_helm?: boolean;
            load_restrictor?: string;
        };
        /** @description What a child may use. None means no limit. */
        Limits: {
            /** Format: int64 */
            memory_bytes?: number | null;
            /** Format: int64 */
            processes?: number | null;
            /**
             * Format: int64
             * @description Thousandths of one core.
             */
            cpu_millis?: number | null;
            /**
             * Format: int64
             * @description Quota of the execution's directory.
             */
            disk_bytes?: number | null;
        };
        /** @description What a page listens to: which things changed. The page asks for what it shows. */
        LiveNote: {
            /** @description As events have it, or `runner.presence`, `step.waiting`. */
            kind: string;
            subject_type: string;
            subject_id: string;
            install_id?: string;
            workflow_id?: string;
            step_id?: string;
            runner_id?: string;
            app_id?: string;
            status?: string;
            actor?: string;
            at?: components["schemas"]["Timestamp"] | null;
        };
        Location: {
            location: string;
        };
        /** @description One chunk of a live tail. `text` is lossy UTF-8; the raw endpoint has the bytes. */
        LogChunk: {
            /** @description Position in the stream: the SSE id, and what `after` takes. */
            position: string;
            execution_id: components["schemas"]["ExecutionId"];
            /** Format: int64 */
            seq: number;
            time: components["schemas"]["Timestamp"];
            /** @description `stdout`, `stderr` or `system`. */
            pipe: string;
            step?: string | null;
            text: string;
            /**
             * Format: int64
             * @description So many bytes are missing here; 0 where the executor died, and nobody knows.
             */
            gap_bytes?: number | null;
        };
        /** @description What an org keeps of its logs. */
        LogKeeping: {
            /**
             * Format: int64
             * @description How long a log is kept after its last line; without end where it is missing.
             */
            retention_s?: number | null;
            /**
             * Format: int64
             * @description How much all logs may take, compressed.
             */
            quota_bytes?: number | null;
            /**
             * Format: int64
             * @description What they take now.
             */
            size_bytes: number;
            /**
             * Format: int64
             * @description How many there are, one for each execution of a job.
             */
            logs: number;
        };
        LogLine: {
            /** Format: int64 */
            n: number;
            time: components["schemas"]["Timestamp"];
            text: string;
            /** @description `stdout`, `stderr` or `system`; stdout where it is absent. */
            pipe?: string;
            step?: string;
            /**
             * Format: int64
             * @description So many bytes are missing here.
             */
            gap_bytes?: number | null;
            /**
             * Format: int64
             * @description The line is longer: so many bytes of it are not here.
             */
            cut_bytes?: number;
        };
        LogLines: {
            /** Format: int64 */
            from: number;
            lines: components["schemas"]["LogLine"][];
            /**
             * Format: int64
             * @description Of the whole log, as far as it is known now.
             */
            total: number;
            position: string;
        };
        /** @description Lines of a log that a search finds. */
        LogMatches: {
            /** @description Line numbers, in order. */
            lines: number[];
            /** Format: int64 */
            total: number;
            /** @description There are more than are listed. */
            more?: boolean;
        };
        /** @description What a log consists of. Lines are numbered from 1, over all executions of its job. */
        LogOutline: {
            log_stream_id: string;
            /** Format: int64 */
            lines: number;
            /** @description More may come. */
            open: boolean;
            sections: components["schemas"]["LogSection"][];
            /** @description Where a live tail goes on. */
            position: string;
            job_id?: string;
            job_name?: string;
            job_status?: string;
            install_id?: string;
            install_name?: string;
            workflow_id?: string;
            step_id?: string;
            /** @description Lines in whose place something is missing; the first 1,000. */
            gaps?: number[];
            /** @description Lines that look like failures; the first 1,000. */
            failures?: number[];
            /** Format: int64 */
            failures_total?: number;
            note?: string;
            started_at?: components["schemas"]["Timestamp"] | null;
            finished_at?: components["schemas"]["Timestamp"] | null;
            /** @description The error that the job ended with. */
            error?: string;
            /** @description Job needs a person to say how it ended. */
            unknown?: boolean;
        };
        /** @description One line (or the piece of a line that lay in one chunk). */
        LogRecord: {
            id: string;
            timestamp: string;
            /** @description Nanoseconds; the cursor of this record. */
            cursor: string;
            severity_text: string;
            /** Format: int64 */
            severity_number: number;
            service_name: string;
            body: string;
            log_stream_id: components["schemas"]["LogStreamId"];
            runner_id: components["schemas"]["RunnerId"];
            runner_job_id?: components["schemas"]["JobId"] | null;
            runner_job_execution_id?: components["schemas"]["ExecutionId"] | null;
            runner_job_execution_step?: string;
            log_attributes?: {
                [key: string]: string;
            };
            resource_attributes?: {
                [key: string]: string;
            };
            scope_name?: string;
            trace_id?: string;
            span_id?: string;
            /** @description All of a log record, a span or a data point that an exporter sent. */
            data?: unknown;
        };
        /** @description A step of an execution. */
        LogSection: {
            name: string;
            /** Format: int64 */
            from: number;
            /** Format: int64 */
            to: number;
            /**
             * Format: int64
             * @description 1 for the first execution.
             */
            epoch?: number;
            /** @description `running`, `done` or `failed`. */
            status?: string;
            started_at?: components["schemas"]["Timestamp"] | null;
            /** Format: int64 */
            took_ms?: number;
        };
        LogStream: {
            id: components["schemas"]["LogStreamId"];
            org_id: components["schemas"]["OrgId"];
            owner_id: string;
            owner_type: string;
            /** @description More may come. */
            open: boolean;
            created_at: components["schemas"]["Timestamp"];
            /**
             * Format: int64
             * @description What it takes, compressed; where the stream itself was asked for.
             */
            size_bytes?: number | null;
            deleted_at?: components["schemas"]["Timestamp"] | null;
            /** @description What a reader should know: that it was deleted, or that the org's quota is used up. */
            note?: string;
        };
        /** @description Where the output of a job goes. */
        LogStreamId: string;
        LogStreamRef: {
            id: string;
        };
        /** @description What became of a removal. */
        MemberRemoved: {
            account_id: components["schemas"]["AccountId"];
            /** @description Providers whose groups give the person a role again with the next sign-in. */
            groups_of?: string[];
        };
        OperationRoleRule: {
            principal_type: string;
            operation: string;
            role: string;
            principal_name?: string;
        };
        OperationRoleRuleRequest: {
            /** @description `nuon::sandbox`, `nuon::component:NAME` or `nuon::action:NAME`. */
            principal: string;
            operation: string;
            role: string;
        };
        Org: {
            id: components["schemas"]["OrgId"];
            name: string;
            status: string;
            status_description: string;
            sandbox_mode: boolean;
            created_by_id: components["schemas"]["AccountId"];
            created_at: components["schemas"]["Timestamp"];
            updated_at: components["schemas"]["Timestamp"];
            /** @description The org's build runner. */
            build_runner_id: components["schemas"]["RunnerId"];
        };
        /** @description The frame of every page. */
        OrgFrame: {
            org_id: string;
            name: string;
            role: components["schemas"]["Role"];
            simulated: boolean;
            /** Format: int64 */
            approvals: number;
            build_runner: components["schemas"]["BuildRunnerState"];
            can: {
                [key: string]: components["schemas"]["Can"];
            };
            version?: string;
        };
        /** @description A tenant: a vendor. */
        OrgId: string;
        /** @description Somebody who is asked to join an org. */
        OrgInvite: {
            id: components["schemas"]["InviteId"];
            org_id: components["schemas"]["OrgId"];
            email: string;
            /** @description The role in the words of existing clients: `org_admin` for an admin, else the role's own name. */
            role_type: string;
            role: components["schemas"]["Role"];
            /** @description `pending`, `accepted` or `revoked`; one that has expired is `revoked`. */
            status: string;
            created_by_id: components["schemas"]["AccountId"];
            created_at: components["schemas"]["Timestamp"];
            updated_at: components["schemas"]["Timestamp"];
            expires_at: components["schemas"]["Timestamp"];
            /** @description The link for the person: only in the answer that creates it. */
            url?: string | null;
            /** @description Whether it was mailed: only in the answer that creates it. */
            mailed?: boolean | null;
        };
        /** @description Somebody who belongs to an org. */
        OrgMember: {
            account_id: components["schemas"]["AccountId"];
            email: string;
            /** @description The highest of the roles that the person has there. */
            role: components["schemas"]["Role"];
            /** @description Providers whose groups give a role; a role from a person is not named. */
            groups_of?: string[];
            created_at: components["schemas"]["Timestamp"];
            seen_at?: components["schemas"]["Timestamp"] | null;
        };
        /** @description An org, and the role in it. */
        OrgRole: {
            id: components["schemas"]["OrgId"];
            name: string;
            role: components["schemas"]["Role"];
        };
        /** @enum {string} */
        Outcome: "finished" | "failed" | "timed-out" | "cancelled" | "not-attempted";
        PartDrift: {
            /** @description A component's name, or `sandbox`. */
            part: string;
            drift: components["schemas"]["DriftWord"];
            looked_at?: components["schemas"]["Timestamp"] | null;
            workflow_id?: string;
            /** @description The step whose plan shows what differs. */
            step_id?: string;
            digest?: string;
            changes?: components["schemas"]["PlanChanges"] | null;
            /** @description Why nothing is known. */
            reason?: string;
            schedule?: string;
            next_at?: components["schemas"]["Timestamp"] | null;
        };
        /**
         * @description How a part of an install, or all of it, stands.
         * @enum {string}
         */
        PartWord: "active" | "inactive" | "pending" | "error" | "unknown";
        PlanAttribute: {
            path: string;
            before: components["schemas"]["PlanValue"];
            after: components["schemas"]["PlanValue"];
            /** @description It can't be changed in place. */
            forces_replacement?: boolean;
            /** @description Of texts with several lines: what changed, line by line. */
            hunks?: components["schemas"]["PlanHunk"][];
        };
        PlanChanges: {
            /** Format: int64 */
            create: number;
            /** Format: int64 */
            update: number;
            /** Format: int64 */
            replace: number;
            /** Format: int64 */
            destroy: number;
            /** Format: int64 */
            outputs: number;
            /** Format: int64 */
            import?: number;
            /** Format: int64 */
            moved?: number;
            /** Format: int64 */
            forget?: number;
            /** Format: int64 */
            other?: number;
            /**
             * Format: int64
             * @description 1 where nothing changes in the customer's account, and only what is recorded here does.
             */
            recorded?: number;
        };
        /** @description How a plan differs from another one of the same part. */
        PlanDiff: {
            digest: string;
            against: string;
            /** @description Nothing differs in what they would do. */
            same: boolean;
            /** @description Only in the newer one. */
            added: components["schemas"]["PlanResource"][];
            /** @description Only in the older one. */
            removed: components["schemas"]["PlanResource"][];
            /** @description In both, and other than it was: as the newer one has it. */
            changed: components["schemas"]["PlanResource"][];
            /** Format: int64 */
            unchanged?: number;
        };
        PlanHunk: {
            /** Format: int64 */
            before_line: number;
            /** Format: int64 */
            after_line: number;
            /** @description Each begins with ` `, `+` or `-`. */
            lines: string[];
        };
        PlanOutput: {
            name: string;
            /** @description `create`, `update` or `destroy`. */
            action: string;
            values?: components["schemas"]["PlanAttribute"][];
            /** Format: int64 */
            values_omitted?: number;
        };
        PlanResource: {
            address: string;
            /** @description `create`, `update`, `replace`, `destroy`, `read`, `forget`, `import` or `move`. */
            action: string;
            /** @description The module path, empty for the root; of an object in a cluster its namespace. */
            module?: string;
            /** @description `aws_s3_bucket`, or the kind of an object. */
            type?: string;
            name?: string;
            provider?: string;
            /** @description Why, as the end of a sentence. */
            reason?: string;
            previous_address?: string;
            import_id?: string;
            deposed?: string;
            /** @description `destroy-first`, `create-first` or `forget`, of a replacement. */
            replace?: string;
            /** @description It would be destroyed or replaced, and usually holds data. */
            holds_data?: boolean;
            attributes?: components["schemas"]["PlanAttribute"][];
            /** Format: int64 */
            attributes_omitted?: number;
        };
        PlanValue: {
            /** @description `absent`, `value`, `sensitive` or `unknown` (known after apply). */
            is: string;
            /** @description As JSON writes it. */
            text?: string;
            /** Format: int64 */
            cut_chars?: number;
        };
        /** @description What a step would change, masked and bounded. */
        PlanView: {
            step_id: string;
            workflow_id: string;
            install_id: string;
            /** @description What an approval names. */
            digest: string;
            /** @description Such as `plan storefront`. */
            title: string;
            /** @description `terraform`, `helm`, `manifest`, `job`, `image` or `simulated`. */
            type: string;
            /** @description How the step that made it stands. */
            status: string;
            changes: components["schemas"]["PlanChanges"];
            /**
             * Format: int64
             * @description Resources that hold data and would be destroyed or replaced.
             */
            data_loss: number;
            /** @description Destroyed and replaced first, then by address. */
            resources: components["schemas"]["PlanResource"][];
            outputs: components["schemas"]["PlanOutput"][];
            /** @description What was changed outside of Ferry; shown only. */
            drift: components["schemas"]["PlanResource"][];
            can: {
                [key: string]: components["schemas"]["Can"];
            };
            component?: string;
            asked_at?: components["schemas"]["Timestamp"] | null;
            expires_at?: components["schemas"]["Timestamp"] | null;
            /** @description Why a person is asked. */
            ask?: string;
            policies?: components["schemas"]["PolicyCounts"] | null;
            verdicts?: components["schemas"]["PolicyVerdict"][];
            answer?: components["schemas"]["StepApprovalResponse"] | null;
            /** @description Sentences that a reader must know: it ended with an error, it does not do everything. */
            notes?: string[];
            /**
             * Format: int64
             * @description Resources that are not listed.
             */
            omitted?: number;
            /** @description Nothing would change. */
            noop?: boolean;
            terraform_version?: string;
            /** @description Digests of earlier plans of the same part in this workflow, newest first: what `diff` takes. */
            earlier?: string[];
            /** @description The newest plan of the same part, where this one was replaced. */
            replaced_by_step?: string;
        };
        /** @description Empty: nobody fills it in yet. */
        Platform: {
            architecture?: string;
            os?: string;
            variant?: string;
        };
        PolicyConfig: {
            id: string;
            contents: string;
            type: string;
            name?: string;
            engine?: string;
            components?: string[];
        };
        PolicyCounts: {
            /** Format: int64 */
            asked: number;
            /** Format: int64 */
            denied: number;
            /** Format: int64 */
            warned: number;
        };
        /** @description What policies said about a step. */
        PolicyReport: {
            id: string;
            install_id: string;
            workflow_id: string;
            /** @description Name of the step. */
            step: string;
            /**
             * Format: int64
             * @description How many policies were asked.
             */
            policy_count: number;
            /** Format: int64 */
            deny_count: number;
            /** Format: int64 */
            warn_count: number;
            evaluated_at: components["schemas"]["Timestamp"];
            component_name?: string;
            violations?: components["schemas"]["PolicyViolation"][];
        };
        PolicyRequest: {
            contents: string;
            type: string;
            name?: string;
            description?: string;
            engine?: string;
            components?: string[];
        };
        PolicyVerdict: {
            policy: string;
            /** @description `deny` or `warn`. */
            severity: string;
            message: string;
            address?: string;
        };
        PolicyViolation: {
            policy_name: string;
            /** @description `deny` or `warn`. */
            severity: string;
            message: string;
            /** @description What it is about. */
            input_identity?: string;
        };
        Project: {
            project_id: string;
            region: string;
        };
        Pulumi: components["schemas"]["Stamp"] & {
            component_config_connection_id: string;
            runtime: string;
            version?: string;
            config?: components["schemas"]["BTreeMap"];
            env_vars?: components["schemas"]["BTreeMap"];
            public_git_vcs_config?: components["schemas"]["GitSource"] | null;
            connected_github_vcs_config?: components["schemas"]["GitSource"] | null;
        };
        /** @description What a check has found. It can only make a component look worse. */
        PushHealthCheck: {
            status: components["schemas"]["Verdict"];
            message?: string;
            /** @description Such as `10m`: after this it counts as unknown. At most 60m; 5m by default. */
            stale_after?: string | null;
        };
        /** @description A README as blocks, with values filled in; never HTML. */
        Readme: {
            blocks: components["schemas"]["ReadmeBlock"][];
            /** @description What could not be filled in. */
            problems?: string[];
        };
        ReadmeBlock: {
            /** @description `heading`, `paragraph`, `code`, `list`, `quote`, `table` or `rule`. */
            type: string;
            /** Format: int64 */
            level?: number;
            text?: components["schemas"]["ReadmeText"][];
            /** @description Of code. */
            language?: string;
            code?: string;
            ordered?: boolean;
            /** Format: int64 */
            start?: number;
            /** @description Of a list: each item is blocks; of a quote: one item. */
            items?: components["schemas"]["ReadmeItem"][];
            header?: components["schemas"]["ReadmeCell"][];
            rows?: components["schemas"]["ReadmeRow"][];
        };
        ReadmeCell: {
            text: components["schemas"]["ReadmeText"][];
        };
        ReadmeItem: {
            blocks: components["schemas"]["ReadmeBlock"][];
            /** @description Of a list of tasks. */
            checked?: boolean | null;
        };
        ReadmeRow: {
            cells: components["schemas"]["ReadmeCell"][];
        };
        /** @description A run of text. */
        ReadmeText: {
            text: string;
            strong?: boolean;
            emphasis?: boolean;
            code?: boolean;
            strike?: boolean;
            /** @description Where it leads: http, https or mailto, and nothing else. */
            href?: string;
        };
        Region: {
            region: string;
        };
        RemoveInstallLabels: {
            keys: string[];
        };
        /** @description A component or action that no file names any more. */
        RemovedEntity: {
            id: string;
            name: string;
            /** @description `component` or `action`. */
            kind: string;
        };
        RenderProblem: {
            /** @description Where in the component or action. */
            path: string;
            message: string;
        };
        /** @description What a component or action would receive on an install. Sensitive values are masked. */
        Rendered: {
            name: string;
            /** @description `component` or `action`. */
            kind: string;
            rendered: Record<string, never>;
            /** @description What could not be rendered yet, and why. */
            problems?: components["schemas"]["RenderProblem"][];
        };
        /** @description A resource that an apply has begun with. */
        ResourceProgress: {
            address: string;
            action: string;
            status: components["schemas"]["ResourceStatus"];
            started_at?: components["schemas"]["Timestamp"] | null;
            /** Format: int64 */
            took_s?: number | null;
        };
        /** @enum {string} */
        ResourceStatus: "started" | "done" | "failed";
        /**
         * @description Ordered: a later role may do all that an earlier one may.
         * @enum {string}
         */
        Role: "read-only" | "approver" | "operator" | "admin";
        /** @description A role of the customer's account. The name of the type is the dialect's; the role may be of any cloud. */
        RoleConfig: components["schemas"]["Stamp"] & {
            name: string;
            type?: string;
            description?: string;
            display_name?: string;
            cloud_platform?: string;
            permissions_boundary?: string;
            policies?: components["schemas"]["RolePolicyConfig"][];
        };
        RolePolicyConfig: {
            name?: string;
            managed_policy_name?: string;
            contents?: string;
            gcp_predefined_role?: string;
            gcp_permissions?: string[];
            azure_built_in_roles?: string[];
            azure_actions?: string[];
        };
        RoleRequest: {
            name: string;
            description: string;
            display_name: string;
            cloud_platform?: string;
            enabled_in_stack?: boolean | null;
            permissions_boundary?: string;
            policies?: components["schemas"]["RolePolicyConfig"][];
        };
        RunProgress: {
            address: string;
            action: string;
            status: string;
            /** Format: int64 */
            took_s?: number;
        };
        RunStep: {
            id: string;
            name: string;
            status: components["schemas"]["StepWord"];
            /** @description `system`, `user`, `approval` or `skipped`. */
            kind: string;
            /** Format: int64 */
            idx: number;
            /** Format: int64 */
            group: number;
            /** Format: int64 */
            attempt: number;
            can: {
                [key: string]: components["schemas"]["Can"];
            };
            component?: string;
            /** @description `plan`, `apply`, `sandbox-plan`, `sandbox-apply`, `action`, `script`, `image`, `health`, `secrets`, `wait` or `skipped`. */
            work?: string;
            /** @description Steps that must be done before, by `idx`. */
            after?: number[];
            /** @description Why it ended as it did. */
            reason?: string;
            waits?: components["schemas"]["WaitingReason"] | null;
            started_at?: components["schemas"]["Timestamp"] | null;
            finished_at?: components["schemas"]["Timestamp"] | null;
            /**
             * Format: int64
             * @description Where its bar begins, and how long it is.
             */
            offset_ms?: number;
            /** Format: int64 */
            took_ms?: number;
            /** @description There is a newer attempt. */
            replaced?: boolean;
            job_id?: string;
            job_status?: string;
            log_stream_id?: string;
            /** @description The digest of its plan. */
            digest?: string;
            changes?: components["schemas"]["PlanChanges"] | null;
            /** Format: int64 */
            data_loss?: number;
            policies?: components["schemas"]["PolicyCounts"] | null;
            answer?: components["schemas"]["StepApprovalResponse"] | null;
            expires_at?: components["schemas"]["Timestamp"] | null;
            role?: string;
            /** @description Resources that an apply works at, the latest first; at most 20. */
            progress?: components["schemas"]["RunProgress"][];
        };
        /** @description A workflow, its steps in their order, and what may be done. */
        RunView: {
            id: string;
            type: string;
            /** @description Such as `provision` or `deploy storefront`. */
            title: string;
            status: components["schemas"]["WorkflowWord"];
            install_id: string;
            install_name: string;
            app_id: string;
            app_name: string;
            created_by: string;
            created_at: components["schemas"]["Timestamp"];
            /** @description `prompt` or `approve-all`. */
            approval_option: string;
            steps: components["schemas"]["RunStep"][];
            /**
             * Format: int64
             * @description What the slowest line of steps took, for the scale of bars.
             */
            span_ms: number;
            can: {
                [key: string]: components["schemas"]["Can"];
            };
            plan_only?: boolean;
            started_at?: components["schemas"]["Timestamp"] | null;
            finished_at?: components["schemas"]["Timestamp"] | null;
            /** Format: int64 */
            config_version?: number;
            /** @description Why it did not succeed, or what it went on without. */
            trouble?: string;
            waits?: components["schemas"]["WaitingReason"] | null;
            /** @description The step that a page opens with. */
            focus?: string;
            /** Format: int64 */
            done?: number;
            /** Format: int64 */
            total?: number;
            continue_on_error?: boolean;
            cancelled_by?: string;
            approved_by?: string;
            /** @description The command that shows it. */
            command?: string;
        };
        Runbook: {
            id: string;
            app_id: string;
            name: string;
            description?: string;
            labels?: {
                [key: string]: string;
            };
            configs?: components["schemas"]["RunbookConfig"][];
        };
        RunbookConfig: {
            id: string;
            runbook_id: string;
            readme?: string;
            inputs?: components["schemas"]["RunbookInputConfig"][];
            steps?: components["schemas"]["RunbookStepConfig"][];
        };
        RunbookInputConfig: {
            name: string;
            display_name?: string;
            description?: string;
            default?: string;
            type?: string;
            required?: boolean;
            sensitive?: boolean;
        };
        RunbookStepConfig: {
            name: string;
            type: string;
            /** Format: int64 */
            idx: number;
            component_name?: string;
            action_name?: string;
            command?: string;
            inline_contents?: string;
            role?: string;
        };
        Runner: {
            id: components["schemas"]["RunnerId"];
            org_id: components["schemas"]["OrgId"];
            name: string;
            /** @description `build` or `install`. */
            kind: string;
            install_id?: components["schemas"]["InstallId"] | null;
            /** @description `pending`, `active`, `offline` or `disabled`. */
            status: string;
            status_description: string;
            /**
             * Format: int64
             * @description Raised each time a new runner process joins without an earlier key.
             */
            generation: number;
            /** @description Draining by request of an operator. */
            draining: boolean;
            last_seen_at?: components["schemas"]["Timestamp"] | null;
            settings: components["schemas"]["RunnerSettings"];
            report?: components["schemas"]["RunnerReport"] | null;
            health?: components["schemas"]["Health"] | null;
            created_at: components["schemas"]["Timestamp"];
            updated_at: components["schemas"]["Timestamp"];
        };
        /** @description What carries out jobs. */
        RunnerId: string;
        /** @description What a runner says with every poll. */
        RunnerReport: {
            version: string;
            hostname: string;
            disabled_since?: components["schemas"]["Timestamp"] | null;
            /** @description It is going down and takes nothing more. */
            draining?: boolean;
            /** Format: int64 */
            disk_free_bytes: number;
            /** Format: int64 */
            disk_floor_bytes?: number;
            /** @description Jobs that each group works on. */
            busy?: {
                [key: string]: string[];
            };
            slots?: {
                [key: string]: number;
            };
            /**
             * @description Workspaces whose newest state is on the runner's disk and not yet with the control plane: a plan or an apply that
             *     starts without it would create resources twice.
             */
            rescues_open?: string[];
            /** @description The customer has switched ad hoc actions off: the runner refuses scripts that are not part of the app's config. */
            no_ad_hoc?: boolean;
            /** @description The customer's own registry, `HOST/PATH` and maybe `http://` before it: images are copied there. */
            registry?: string | null;
        };
        /** @description What the control plane sets for a runner; changes reach it without a restart. */
        RunnerSettings: {
            /**
             * Format: int64
             * @description Raised with every change.
             */
            version: number;
            /** @description Slots of each job group. */
            groups: {
                [key: string]: number;
            };
            /**
             * Format: int64
             * @description No job is taken with less free disk than this.
             */
            disk_floor_bytes: number;
            /**
             * Format: int64
             * @description Quota of an execution's directory where its spec names none.
             */
            execution_disk_bytes: number;
            /**
             * Format: int64
             * @description How much unsent log an execution may pile up before a gap is marked.
             */
            spool_bytes: number;
            /**
             * Format: int64
             * @description How long SIGTERM lets executions go on.
             */
            drain_s: number;
            /**
             * Format: int64
             * @description How often the server asks for a health check; 0 = never.
             */
            health_check_s: number;
        };
        /**
         * @description How a runner is.
         * @enum {string}
         */
        RunnerWord: "pending" | "active" | "offline" | "disabled";
        RunningWorkflow: {
            id: string;
            install_id: string;
            install_name: string;
            type: string;
            status: string;
            /** Format: int64 */
            done: number;
            /** Format: int64 */
            total: number;
            started_at: components["schemas"]["Timestamp"];
            /** @description What it does now. */
            now?: string;
        };
        /** @description A filter of the fleet that somebody has saved. */
        SavedView: {
            id: string;
            name: string;
            /** @description The query of the page, such as `app=shop&drift=drifted`. */
            query: string;
            /** @description Everybody of the org sees it. */
            shared: boolean;
            created_by: string;
            created_at: components["schemas"]["Timestamp"];
            mine: boolean;
        };
        SearchItem: {
            /** @description `install`, `app`, `component`, `workflow`, `runner`, `job`, `action`, `runbook` or `build`. */
            kind: string;
            id: string;
            name: string;
            /** @description What it belongs to. */
            of?: string;
            app_id?: string;
            install_id?: string;
            workflow_id?: string;
            status?: string;
        };
        SearchResults: {
            items: components["schemas"]["SearchItem"][];
        };
        /** @description A secret of the customer's account; its default is never shown. */
        SecretConfig: {
            id: string;
            name: string;
            display_name?: string;
            description?: string;
            required?: boolean;
            auto_generate?: boolean;
            format?: string;
            kubernetes_sync?: boolean;
            kubernetes_secret_namespace?: string;
            kubernetes_secret_name?: string;
            kubernetes_sync_targets?: components["schemas"]["SyncTarget"][];
        };
        SecretRequest: {
            name: string;
            display_name: string;
            description: string;
            required?: boolean;
            auto_generate?: boolean;
            format?: string;
            default?: string;
            kubernetes_sync?: boolean | null;
            kubernetes_secret_namespace?: string;
            kubernetes_secret_name?: string;
            kubernetes_sync_targets?: components["schemas"]["SyncTarget"][];
        };
        SessionsEnded: {
            /** Format: int64 */
            ended: number;
        };
        /** @description How an unknown job ended, as someone saw by looking. */
        SettleJob: {
            /** @description `finished`, `failed` or `cancelled`. */
            outcome: components["schemas"]["Outcome"];
            note?: string;
        };
        /** @description A link that signs one browser in, once. */
        SignInLink: {
            url: string;
            expires_at: components["schemas"]["Timestamp"];
        };
        /** @description Where the files of a step come from. */
        Source: {
            url: string;
            reference?: string | null;
            directory?: string | null;
            /** @description Its submodules are fetched too. */
            submodules?: boolean;
            credentials?: components["schemas"]["Credentials"] | null;
            /** @enum {string} */
            kind: "git";
        } | {
            digest: components["schemas"]["Digest"];
            directory?: string | null;
            /** @enum {string} */
            kind: "archive";
        };
        SourceLogin: {
            prefix: string;
            username: string;
            created_by_id: string;
            created_at: components["schemas"]["Timestamp"];
            expires_at?: components["schemas"]["Timestamp"] | null;
        };
        /** @description What everything that was made once has. */
        Stamp: {
            id: string;
            created_by_id: string;
            created_at: components["schemas"]["Timestamp"];
            updated_at: components["schemas"]["Timestamp"];
            org_id?: string;
            app_id?: string;
            app_config_id?: string;
        };
        StateChange: {
            /** @description Dotted. */
            path: string;
            /** @description `added`, `removed` or `changed`. */
            change: string;
            before?: string;
            after?: string;
        };
        /** @description How two versions of an install's state differ. */
        StateDiff: {
            /** Format: int64 */
            from: number;
            /** Format: int64 */
            to: number;
            changes: components["schemas"]["StateChange"][];
            /** Format: int64 */
            omitted?: number;
        };
        /** @description A plan that waits, or waited, for an approval. Its id is the digest of the plan. */
        StepApproval: {
            id: string;
            workflow_step_id: string;
            type: string;
            created_at?: components["schemas"]["Timestamp"] | null;
            response?: components["schemas"]["StepApprovalResponse"] | null;
        };
        StepApprovalResponse: {
            id: string;
            type: string;
            note?: string;
            created_by_id?: string;
            created_at?: components["schemas"]["Timestamp"] | null;
        };
        /** @description One step of an action, while it runs and after. */
        StepResult: {
            name: string;
            status: components["schemas"]["StepStatus"];
            /** Format: int32 */
            exit_code?: number | null;
            started_at?: components["schemas"]["Timestamp"] | null;
            finished_at?: components["schemas"]["Timestamp"] | null;
            error?: string | null;
            /** @description What Terraform has begun with, those that last first. */
            resources?: components["schemas"]["ResourceProgress"][];
        };
        StepRetried: {
            workflow_id: string;
            retryable: boolean;
        };
        StepSpec: {
            /** @description Unique in the action; the key of its outputs. */
            name: string;
            /** @description A script: written to a file and executed; `#!/bin/sh` when it names no interpreter. */
            inline_contents?: string | null;
            /** @description A command line for `sh -c`, in the directory of the source. */
            command?: string | null;
            source?: components["schemas"]["Source"] | null;
            env?: {
                [key: string]: string;
            };
        };
        /** @enum {string} */
        StepStatus: "pending" | "in-progress" | "finished" | "error" | "timed-out" | "cancelled" | "not-attempted";
        /**
         * @description How a step of a workflow stands.
         * @enum {string}
         */
        StepWord: "pending" | "in-progress" | "approval-awaiting" | "approved" | "success" | "auto-skipped" | "user-skipped" | "drifted" | "no-drift" | "error" | "unknown" | "approval-denied" | "approval-expired" | "cancelled" | "not-attempted" | "discarded";
        /**
         * @description A whole app at once: what its files say, as `ferry apps validate` reads them, and the digests of the archives of its
         *     local sources, by directory.
         */
        SyncApp: {
            config: Record<string, never>;
            local_sources?: components["schemas"]["BTreeMap"];
            cli_version?: string;
            /** @description Only say what would change. */
            plan_only?: boolean;
        };
        SyncArtifact: {
            /** @description A build of the install's app. */
            build_id?: string;
            /** @description Or the last good build of a component, by name or id. */
            component?: string;
            /** @description `host[:port]/path` of the install's own registry; the vendor's is read directly where nothing is said. */
            repository?: string;
            /** @description That registry speaks HTTP without TLS. */
            plain_http?: boolean;
        };
        SyncTarget: {
            namespaces: string[];
            name: string;
            key: string;
        };
        /** @description What a sync did, or would do. */
        SyncedApp: {
            config: components["schemas"]["AppConfig"];
            /** @description The active version was this one already. */
            unchanged: boolean;
            changes?: Record<string, never>[];
            /** @description Components and actions that the app has, and this config does not. */
            removed?: components["schemas"]["RemovedEntity"][];
            /** @description One for each component: made now, or before. */
            builds?: components["schemas"]["Build"][];
            warnings?: Record<string, never>[];
        };
        /** @description Who holds a workspace. */
        TerraformLock: {
            id: string;
            who: string;
            operation: string;
            created: components["schemas"]["Timestamp"];
            info?: string;
            /** @description Of the program that took it. */
            version?: string;
            /** @description Empty: a person on the customer's side. */
            execution_id?: string;
            job_id?: string;
        };
        TerraformModule: components["schemas"]["Stamp"] & {
            component_config_connection_id: string;
            version?: string;
            variables?: components["schemas"]["BTreeMap"];
            variables_files?: string[];
            env_vars?: components["schemas"]["BTreeMap"];
            public_git_vcs_config?: components["schemas"]["GitSource"] | null;
            connected_github_vcs_config?: components["schemas"]["GitSource"] | null;
        };
        /** @description An instance of a resource, without its values. */
        TerraformResource: {
            address: string;
            type: string;
            provider: string;
            /** @description `managed` or `data`. */
            mode: string;
            /** @description `ready`, `tainted` or `deposed`. */
            status: string;
        };
        /** @description A state as it was written once. */
        TerraformState: {
            id: string;
            org_id: string;
            terraform_workspace_id: string;
            /** Format: int64 */
            serial: number;
            /**
             * Format: int64
             * @description The serial, as the dialect calls it.
             */
            revision: number;
            lineage: string;
            /**
             * Format: int64
             * @description Of the plain state.
             */
            bytes: number;
            /** @description Of the sealed state. */
            digest: string;
            /** Format: int64 */
            resource_count: number;
            author: string;
            created_by_id: string;
            created_at: components["schemas"]["Timestamp"];
            updated_at: components["schemas"]["Timestamp"];
            /** @description It is the state now. */
            current?: boolean;
            /** @description Who wrote it had lost its lease: it is kept, and was never the state. */
            quarantined?: boolean;
            /** @description Why it was written, where that is not an apply. */
            note?: string;
            job_id?: string;
            runner_job_id?: string;
            /** @description Only of a state that is looked at alone. */
            resources?: components["schemas"]["TerraformResource"][];
            terraform_workspace?: components["schemas"]["TerraformWorkspace"] | null;
        };
        /** @description Where Terraform keeps the state of a part of an install. */
        TerraformWorkspace: {
            id: string;
            org_id: string;
            install_id: string;
            /** @description `components/NAME` or `sandbox`. */
            target: string;
            owner_id: string;
            owner_type: string;
            created_at: components["schemas"]["Timestamp"];
            updated_at: components["schemas"]["Timestamp"];
            /** @description Name of the component; empty for the sandbox. */
            component?: string;
            sandbox?: boolean;
            /** @description The state as it is; empty before the first one. */
            state_id?: string;
            /** Format: int64 */
            serial?: number;
            lineage?: string;
            /** Format: int64 */
            resource_count?: number;
            /** Format: int64 */
            bytes?: number;
            lock?: components["schemas"]["TerraformLock"] | null;
            /**
             * Format: int64
             * @description States that were kept beside, because who wrote them had lost its lease.
             */
            quarantined?: number;
        };
        /** Format: date-time */
        Timestamp: string;
        ToggleInstallComponent: {
            enabled: boolean;
            /** @description Only shows what would change. */
            plan_only?: boolean;
        };
        Token: {
            id: components["schemas"]["TokenId"];
            name: string;
            role: components["schemas"]["Role"];
            /** @description First characters of the token, to recognise it by. */
            hint: string;
            created_by_id: components["schemas"]["AccountId"];
            created_at: components["schemas"]["Timestamp"];
            expires_at?: components["schemas"]["Timestamp"] | null;
            revoked_at?: components["schemas"]["Timestamp"] | null;
            last_used_at?: components["schemas"]["Timestamp"] | null;
            runner_id?: components["schemas"]["RunnerId"] | null;
            /** @description Where it sends telemetry to: only in the answer that creates it. */
            otlp_endpoint?: string | null;
            /** @description The token itself: only in the answer that creates it. */
            token?: string | null;
        };
        /** @description An API token. */
        TokenId: string;
        /** @description An object or a probe that is not healthy. */
        UnwellObject: {
            /** @description Of the object; `probe` for a probe. */
            kind: string;
            namespace?: string | null;
            name: string;
            verdict: components["schemas"]["Verdict"];
            reason: string;
            /** @description A deploy or a teardown that is on its way explains it. */
            by_change?: boolean;
        };
        UpdateActionWorkflow: {
            name?: string | null;
            labels?: components["schemas"]["BTreeMap"] | null;
        };
        /** @description Fields that are absent stay as they are. */
        UpdateApp: {
            name?: string | null;
            display_name?: string | null;
            description?: string | null;
            config_repo?: string | null;
            config_directory?: string | null;
            label_colors?: components["schemas"]["BTreeMap"] | null;
            slack_webhook_url?: string | null;
        };
        /** @description `active` commits the draft, `error` abandons it. */
        UpdateAppConfig: {
            status?: string | null;
            status_description?: string | null;
            state?: string | null;
            component_ids?: string[] | null;
        };
        UpdateAppConfigInstalls: {
            update_all?: boolean;
            install_ids?: string[];
        };
        UpdateComponent: {
            name: string;
            var_name?: string | null;
            labels?: components["schemas"]["BTreeMap"] | null;
            dependencies?: string[] | null;
        };
        /** @description What an install says about itself. */
        UpdateInstall: {
            /** @description Another name. */
            name?: string;
            /** @description `prompt` or `approve-all`. */
            approval_option?: string;
            /** @description Components that are switched on or off. */
            component_toggles?: {
                [key: string]: boolean;
            };
            /** @description All labels of the install's own. */
            labels?: {
                [key: string]: string;
            } | null;
            metadata?: components["schemas"]["InstallMetadata"] | null;
            install_config?: components["schemas"]["UpdateInstallConfig"] | null;
        };
        /** @description What is absent stays as it is. */
        UpdateInstallConfig: {
            /** @description `prompt` or `approve-all`. */
            approval_option?: string;
            component_toggles?: {
                [key: string]: boolean;
            };
            labels?: components["schemas"]["BTreeMap"] | null;
            /** @description Not carried out yet, and refused. */
            vpc_nested_template_url?: string;
            /** @description Not carried out yet, and refused. */
            runner_nested_template_url?: string;
            /** @description Not carried out yet, and refused. */
            custom_nested_stacks?: unknown[];
        };
        UpdateInstallInputs: {
            inputs: components["schemas"]["BTreeMap"];
            /**
             * @description What the install lays over settings of its components, by the component's name. What is not named stays; an empty text
             *     is removed.
             */
            component_overrides?: {
                [key: string]: components["schemas"]["ComponentOverride"];
            };
            /** @description Always so: what depends on what changes is looked at, too. */
            deploy_dependents?: boolean;
            role?: string;
            /** @description Only changes them; nothing is deployed. */
            no_deploy?: boolean;
        };
        UpdateLogKeeping: {
            /**
             * Format: int64
             * @description At least a day; 0: without end.
             */
            retention_s?: number | null;
            /**
             * Format: int64
             * @description 0: without bound.
             */
            quota_bytes?: number | null;
        };
        UpdateMember: {
            role: components["schemas"]["Role"];
        };
        /** @description Fields that are absent stay as they are. */
        UpdateRunnerSettings: {
            groups?: {
                [key: string]: number;
            } | null;
            /** Format: int64 */
            disk_floor_bytes?: number | null;
            /** Format: int64 */
            execution_disk_bytes?: number | null;
            /** Format: int64 */
            spool_bytes?: number | null;
            /** Format: int64 */
            drain_s?: number | null;
            /** Format: int64 */
            health_check_s?: number | null;
        };
        UpdateWorkflow: {
            /** @description `approve-all`: plans need no person's approval from now on. */
            approval_option: string;
        };
        /**
         * @description From the best to the worst: of several, the last one counts.
         * @enum {string}
         */
        Verdict: "not-applicable" | "healthy" | "progressing" | "unknown" | "degraded" | "unhealthy";
        Version: {
            version: string;
            git_ref: string;
            /**
             * Format: int32
             * @description Protocols of the Runner API that this server speaks, oldest and newest.
             */
            protocol_min: number;
            /** Format: int32 */
            protocol_max: number;
        };
        /** @description Why something waits: a code, a sentence, and what it is about. */
        WaitingReason: {
            /** @description `approval`, `runner-offline`, `runner-busy`, `runner-disabled`, `target-busy`, `earlier-step`, `stack`, `health`, `build` or `other`. */
            code: string;
            text: string;
            subject_type?: string;
            subject_id?: string;
        };
        Workflow: {
            id: string;
            type: string;
            /** @description Derived from the steps: it can't say `success` in the middle. */
            status: components["schemas"]["CompositeStatus"];
            owner_id: string;
            owner_type: string;
            name: string;
            created_by_id: string;
            created_at: components["schemas"]["Timestamp"];
            updated_at: components["schemas"]["Timestamp"];
            /** @description `prompt` or `approve-all`. */
            approval_option: string;
            owner_name?: string;
            plan_only?: boolean;
            finished?: boolean;
            started_at?: components["schemas"]["Timestamp"] | null;
            finished_at?: components["schemas"]["Timestamp"] | null;
            /**
             * Format: int64
             * @description Nanoseconds.
             */
            execution_time?: number;
            /** @description `abort` or `continue`. */
            step_error_behavior?: string;
            /**
             * Format: int64
             * @description The version of the app that it deploys; 0 where it works with what was deployed before (drift, teardown).
             */
            config_version?: number;
            metadata?: {
                [key: string]: unknown;
            };
            steps?: components["schemas"]["WorkflowStep"][];
        };
        /** @description What a mutation that starts work answers. */
        WorkflowStarted: {
            workflow_id: string;
        };
        /** @description One attempt at a step. */
        WorkflowStep: {
            id: string;
            workflow_id: string;
            name: string;
            /** Format: int64 */
            idx: number;
            /** Format: int64 */
            group_idx: number;
            /** Format: int64 */
            group_retry_idx: number;
            /** @description `system`, `user`, `approval`, `skipped` or `hidden`. */
            execution_type: string;
            status: components["schemas"]["CompositeStatus"];
            created_at: components["schemas"]["Timestamp"];
            /** @description Steps that must be done before, by `idx`. */
            after?: number[];
            retryable?: boolean;
            skippable?: boolean;
            retried?: boolean;
            finished?: boolean;
            started_at?: components["schemas"]["Timestamp"] | null;
            finished_at?: components["schemas"]["Timestamp"] | null;
            /**
             * Format: int64
             * @description Nanoseconds.
             */
            execution_time?: number;
            step_target_type?: string;
            step_target_id?: string;
            owner_id?: string;
            owner_type?: string;
            runner_job_id?: string;
            approval?: components["schemas"]["StepApproval"] | null;
            changes?: components["schemas"]["PlanChanges"] | null;
            policies?: components["schemas"]["PolicyCounts"] | null;
            /** @description The role that it is carried out with. */
            role?: string;
        };
        /**
         * @description How a workflow stands.
         * @enum {string}
         */
        WorkflowWord: "pending" | "in-progress" | "approval-awaiting" | "success" | "warning" | "error" | "cancelled";
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
