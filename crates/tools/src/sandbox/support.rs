//! What this kernel can do for a sandbox, in words for people.

use std::sync::OnceLock;

use super::enclosure::Enclosure;
use super::landlock::Abi;
use super::network;

/// What this kernel can do for a sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Support {
    /// The version of landlock; 0 where there is none.
    pub landlock: i32,
    /// How the network can be closed to commands.
    pub network: NetworkWay,
}

/// How commands are kept from outliving their keeper, when it is killed with its guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessWay {
    /// The kernel ends them with it: they are in a process namespace.
    Namespace,
    /// The next command of Mainstay finds them by a stamp that they cannot remove.
    Stamp,
}

/// How the network can be closed to commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkWay {
    /// They get one of their own.
    Namespace,
    /// They make no connections by TCP.
    Tcp,
    /// Not at all.
    Open,
}

impl Support {
    /// The version of landlock that the kernel has; 0 where it has none.
    pub fn landlock_version() -> i32 {
        Abi::of_kernel().0
    }

    /// Tries it out, once a process.
    pub fn of_kernel() -> &'static Self {
        static SUPPORT: OnceLock<Support> = OnceLock::new();
        SUPPORT.get_or_init(|| {
            let abi = Abi::of_kernel();
            // On a thread that ends: this one keeps its network.
            let tried = std::thread::Builder::new()
                .spawn(|| network::separate(None).is_some())
                .map(|tried| {
                    // A panic there would have been told.
                    tried.join().unwrap_or(false)
                });
            // Without a thread it is asked for, and whoever starts a command finds out.
            let separate = tried.unwrap_or(true);
            Self { landlock: abi.0, network: NetworkWay::of(abi, separate) }
        })
    }

    /// What is missing altogether, as the first half of a sentence.
    pub fn missing(&self) -> Option<String> {
        (self.landlock == 0).then(|| "this kernel has no landlock".to_owned())
    }

    /// Whether the kernel can hold commands so well that nobody need be asked before they run: they write
    /// only where they may, and reach nobody. An error is the reason why not, as half a sentence.
    pub fn holds(&self) -> Result<(), String> {
        match (self.landlock, self.network) {
            (0, _) => Err("this kernel has no landlock".to_owned()),
            (1 | 2, _) => Err(format!(
                "this kernel's landlock (version {}) does not keep commands from emptying files \
                 outside the workspace; Linux 6.2 or later does",
                self.landlock
            )),
            (_, NetworkWay::Namespace) => Ok(()),
            (_, NetworkWay::Tcp | NetworkWay::Open) => {
                Err("commands get no network of their own here: user namespaces are switched off"
                    .to_owned())
            }
        }
    }

    /// What a sandbox does not hold on this kernel though it should, a sentence each.
    pub fn losses(&self, way: ProcessWay) -> Vec<&'static str> {
        let since = [
            (2, "files are copied where they would be moved to another directory"),
            (3, "files outside can be emptied, though not written"),
            (5, "devices that can be read can be controlled"),
            (6, "commands can signal other processes of the user and reach their abstract sockets"),
        ];
        let mut losses: Vec<&str> = (since.iter())
            .filter(|(version, _)| self.landlock < *version)
            .map(|(_, loss)| *loss)
            .collect();
        match self.network {
            NetworkWay::Namespace => {}
            NetworkWay::Tcp => losses.push(
                "where the network is denied, only TCP is blocked for commands: the kernel provides no \
                 network namespace",
            ),
            NetworkWay::Open => losses.push(
                "the network cannot be blocked for commands: the kernel provides no network namespace",
            ),
        }
        if way == ProcessWay::Stamp {
            losses.extend(WITHOUT_NAMESPACES);
        }
        losses
    }
}

/// What nothing but namespaces holds.
const WITHOUT_NAMESPACES: [&str; 3] = [
    "modes, owners and times of the user's files can be changed",
    "git's configuration and hooks in the workspace can be changed, and run when git is used outside",
    "the user's terminals can be read",
];

impl ProcessWay {
    /// Tries it out.
    pub fn of_kernel() -> Self {
        // Only what is in a sandbox is put into a namespace.
        if Abi::of_kernel().0 > 0 && Enclosure::is_possible() {
            Self::Namespace
        } else {
            Self::Stamp
        }
    }
}

impl NetworkWay {
    fn of(abi: Abi, separate: bool) -> Self {
        match (abi.0, separate) {
            (0, _) => Self::Open,
            (_, true) => Self::Namespace,
            (4.., false) => Self::Tcp,
            (_, false) => Self::Open,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_of_landlock_loses_less_than_the_one_before() {
        let losses =
            |landlock, network| Support { landlock, network }.losses(ProcessWay::Namespace).len();
        let counts: Vec<usize> =
            (1..=7).map(|version| losses(version, NetworkWay::Namespace)).collect();
        assert_eq!(counts, [4, 3, 2, 2, 1, 0, 0]);
        assert_eq!(losses(7, NetworkWay::Tcp), 1);
        let support = Support { landlock: 7, network: NetworkWay::Namespace };
        assert_eq!(support.losses(ProcessWay::Stamp).len(), 3);
        assert_eq!(NetworkWay::of(Abi(3), false), NetworkWay::Open);
        assert_eq!(NetworkWay::of(Abi(4), false), NetworkWay::Tcp);
        assert_eq!(NetworkWay::of(Abi(0), true), NetworkWay::Open);
    }

    #[test]
    fn the_box_is_held_by_landlock_and_a_network_namespace_and_the_reason_is_told_otherwise() {
        let holds = |landlock, network| Support { landlock, network }.holds();
        assert_eq!(holds(3, NetworkWay::Namespace), Ok(()));
        for (landlock, network, reason) in [
            (0, NetworkWay::Open, "no landlock"),
            (2, NetworkWay::Namespace, "emptying"),
            (7, NetworkWay::Tcp, "network"),
            (7, NetworkWay::Open, "network"),
        ] {
            let told = holds(landlock, network).unwrap_err();
            assert!(told.contains(reason), "{told}");
        }
    }
}
