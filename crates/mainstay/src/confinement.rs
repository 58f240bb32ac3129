//! What is told of the sandbox: that there is none, or less of one than was asked for.

use std::path::Path;

use mainstay_agent::Settings;
use mainstay_agent::policy::Decision;
use mainstay_tools::sandbox::{Mode, Network, NetworkWay, Support};

/// What a run says first where the kernel cannot hold commands to what the configuration says.
pub(crate) fn sandbox_warning(settings: &Settings, workspace: &Path) -> Option<String> {
    let required = match settings.sandbox.mode {
        Mode::Off => return None,
        Mode::On => false,
        Mode::Require => true,
    };
    let closed =
        settings.sandbox.network == Network::Closed || settings.policy.network == Decision::Deny;
    // Whether the network can be closed is found out by trying, so only where it matters.
    if Support::landlock_version() > 0 && !closed {
        return divided(settings, workspace);
    }
    let support = Support::of_kernel();
    if let Some(missing) = support.missing() {
        return Some(if required {
            format!(
                "{missing}, and [sandbox] mode is \"require\": commands and file tools do not run."
            )
        } else {
            format!(
                "{missing}, so commands and file tools run without a sandbox; the policy still \
                 decides what is allowed. Run `mainstay doctor` for details."
            )
        });
    }
    match support.network {
        NetworkWay::Namespace => divided(settings, workspace),
        NetworkWay::Tcp => Some(
            "this kernel has no network namespaces, so commands are kept from TCP but not from \
             the rest of the network."
                .to_owned(),
        ),
        NetworkWay::Open if required => Some(
            "this kernel cannot keep commands from the network, and [sandbox] mode is \"require\": \
             commands do not run."
                .to_owned(),
        ),
        NetworkWay::Open => Some(
            "this kernel cannot keep commands from the network, although the configuration asks \
             for it."
            .to_owned(),
        ),
    }
}

/// Says what commands cannot do in a workspace that holds secrets, such as the user's own directory.
fn divided(settings: &Settings, workspace: &Path) -> Option<String> {
    let Settings { sandbox, environment, forbidden, .. } = settings;
    let workspace = workspace.canonicalize().ok()?;
    let sandbox = sandbox.sandbox(&workspace, environment, forbidden)?;
    sandbox.is_divided(&workspace).then(|| {
        format!(
            "{} holds secrets that the sandbox hides, so commands can create files only in its \
             existing subdirectories; use a directory of its own for the work.",
            workspace.display()
        )
    })
}
